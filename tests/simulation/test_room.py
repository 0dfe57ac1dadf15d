"""Room for the frames is looked at before the first of them is made, and found to be what they take."""

from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest

from orienteer.detector.beam import Beam
from orienteer.detector.square import square_detector
from orienteer.errors import FileError, SettingsError
from orienteer.particle.bodies import sphere
from orienteer.simulation.experiment import simulate
from orienteer.simulation.room import check_room, expected_bytes
from orienteer.simulation.settings import SimulateSettings
from orienteer.source.opening import writer_for

Usage = namedtuple("Usage", "total used free")
# Those of Dragonfly hold photons only.
SIGNAL = ["frames.h5", "frames.cxi", "frames.spinifel.h5", "frames.npy"]


def experiment(**changes: Any) -> Any:
    settings = SimulateSettings(**({"frames": 600, "photons_per_frame": 400} | changes))
    detector = square_detector(32, pixel_size_m=0.003, distance_m=0.2)
    return simulate(sphere(60), Beam(photon_energy_eV=4600), detector, settings, seed=1, device="cpu")


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Says how much of the disk is free."""

    def has(free: float) -> None:
        monkeypatch.setattr("shutil.disk_usage", lambda path: Usage(2 * int(free), int(free), int(free)))

    return has


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        *((name, {}) for name in (*SIGNAL, "frames.emc", "frames.emc.h5")),
        *((name, {"readout": "integrating", "noise_adu": 0.2}) for name in SIGNAL),
    ],
)
def test_what_a_file_will_take_is_known_before(name: str, changes: dict[str, Any], tmp_path: Path) -> None:
    made = experiment(**changes)
    with writer_for(tmp_path / name, like=made) as writer:
        for batch in made:
            writer.append(batch)
    written = (tmp_path / name).stat().st_size
    assert expected_bytes(made, Path(name)) == pytest.approx(written, rel=0.35)


def test_more_frames_than_the_disk_holds_are_refused_before_any_is_made(tmp_path: Path, disk: Any) -> None:
    disk(1e9)
    words = r"frames\.h5: 1,000,000,000,000 frames take about .* 1 GB is free"
    with pytest.raises(FileError, match=words) as it:
        check_room(experiment(frames=10**12), tmp_path / "frames.h5")
    fits = int(it.value.hint.split("--frames ")[1].rstrip("."))
    assert 1e5 < fits < 1e8
    assert check_room(experiment(frames=fits), tmp_path / "frames.h5")
    assert not list(tmp_path.iterdir())


def test_what_is_little_is_not_worth_a_word_nor_a_look(tmp_path: Path, disk: Any, monkeypatch: Any) -> None:
    disk(1e12)
    monkeypatch.setattr("orienteer.simulation.room.expected_bytes", lambda *_: 1 / 0)
    assert check_room(experiment(), tmp_path / "frames.h5") == ""


def test_what_fills_much_of_the_disk_is_told(tmp_path: Path, disk: Any) -> None:
    disk(3e6)
    assert "of the 3 MB free" in check_room(experiment(), tmp_path / "frames.h5")


def test_a_batch_beyond_the_memory_is_refused(tmp_path: Path, disk: Any, monkeypatch: Any) -> None:
    disk(1e12)
    monkeypatch.setattr("orienteer.simulation.room.memory_GiB", lambda: (2.0, 0.5))
    assert check_room(experiment(batch=1000), tmp_path / "frames.h5") == ""
    with pytest.raises(SettingsError, match=r"1,000,000 frames takes about .* 0\.5 GiB are free"):
        check_room(experiment(batch=10**6, frames=10**6), tmp_path / "frames.h5")
    assert check_room(experiment(batch=10**6), tmp_path / "frames.h5") == ""  # there are only 600
