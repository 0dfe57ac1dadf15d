"""An experiment is a source: chosen frames, columns without frames, masks, files in bounded memory."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orienteer
from orienteer.detector.beam import Beam
from orienteer.detector.masks import PixelUse
from orienteer.detector.square import square_detector
from orienteer.errors import GeometryMismatch, OrienteerError
from orienteer.particle.bodies import sphere
from orienteer.simulation.experiment import Experiment
from orienteer.simulation.random_streams import first_event_id
from orienteer.simulation.settings import SimulateSettings
from orienteer.source.base import Source
from orienteer.source.opening import writer_for

DETECTOR = square_detector(12, pixel_size_m=0.008, distance_m=0.2, beam_stop_radius_pixels=1.5)


def experiment(**settings: Any) -> Experiment:
    given = {"frames": 20, "photons_per_frame": 60, "batch": 8, "fluence_jitter": 0.3, "seed": 4, **settings}
    return orienteer.simulate(
        sphere(30), Beam(photon_energy_eV=4600, polarisation="y"), DETECTOR, SimulateSettings(**given)
    )


def test_an_experiment_has_what_every_source_has() -> None:
    made = experiment()
    assert isinstance(made, Source)
    assert (made.format, made.path, made.n_frames, len(made)) == ("simulation", None, 20, 20)
    assert (made.frame_shape, made.n_pixels, made.polarisation) == ((12, 12), 144, "y")
    assert made.is_sparse
    assert made.refresh() == 20
    assert made.metadata["seed"] == 4
    assert "photons_per_frame" in made.metadata["settings"]
    assert "20 frames of 12 x 12 pixels" in repr(made)
    with made as opened:
        assert [len(batch) for batch in opened] == [8, 8, 4]
        assert [len(batch) for batch in opened.batches(15)] == [15, 5]
    with pytest.raises(OrienteerError, match="0 frames"):
        list(made.batches(0))


def test_frames_are_chosen_in_any_order() -> None:
    made = experiment()
    whole = made.read()
    some = made.read([13, 2, -1, 2])
    np.testing.assert_array_equal(some.dense(), whole.dense()[[13, 2, 19, 2]])
    np.testing.assert_array_equal(some.event_id, whole.event_id[[13, 2, 19, 2]])
    for name in made.column_names:
        np.testing.assert_array_equal(some.columns[name], whole.columns[name][[13, 2, 19, 2]])
    assert len(made.read(slice(0, 0))) == 0
    assert tuple(whole.columns) == made.column_names
    with pytest.raises(OrienteerError, match="frame 20"):
        made.read([20])


def test_names_and_truth_come_without_simulating_a_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    made = experiment()
    whole = made.read()

    def refuse(*_: object) -> None:
        raise AssertionError("a frame was simulated")

    monkeypatch.setattr(Experiment, "expected", refuse)
    ids = made.event_ids(slice(3, 9))
    np.testing.assert_array_equal(ids, whole.event_id[3:9])
    assert ids[0] == first_event_id(4) + 3
    columns = made.read_columns()
    assert set(columns) == set(made.column_names)
    np.testing.assert_array_equal(columns["truth_fluence"], whole.columns["truth_fluence"])
    assert list(made.read_columns(["truth_kind"], [4])) == ["truth_kind"]
    with pytest.raises(OrienteerError, match="no column"):
        made.read_columns(["no_such"])


def test_dead_pixels_are_seen_in_the_detector_and_in_the_mask() -> None:
    made = experiment(dead_pixel_fraction=0.2)
    assert made.detector is not None
    never = made.detector.mask == PixelUse.NEVER
    assert never.sum() > (DETECTOR.mask == PixelUse.NEVER).sum()
    np.testing.assert_array_equal(made.mask == PixelUse.NEVER, never)
    plain = DETECTOR.with_mask(np.zeros(144, np.uint8))
    other = made.with_detector(plain.moved((0, 0, 0.1)))
    assert other.detector is not None
    np.testing.assert_array_equal(other.detector.mask == PixelUse.NEVER, never)
    np.testing.assert_array_equal(other.read().dense(), made.read().dense())
    with pytest.raises(GeometryMismatch):
        made.with_detector(square_detector(10, pixel_size_m=0.008, distance_m=0.2))


def test_columns_of_pixels_can_be_read_alone() -> None:
    made = experiment(readout="integrating", saturation_photons=3, calibrated=False)
    whole = made.read()
    columns = made.read_columns(["frame_mask", "gain_stage", "truth_kind"], slice(5, 9))
    for name, column in columns.items():
        np.testing.assert_array_equal(column, whole.columns[name][5:9])
    assert columns["frame_mask"].any()


@pytest.mark.parametrize("more", [{}, {"readout": "integrating", "saturation_photons": 3.0}])
def test_a_file_of_an_experiment_holds_the_same(tmp_path: Path, more: dict[str, Any]) -> None:
    made = experiment(dead_pixel_fraction=0.1, empty_fraction=0.2, **more)
    path = tmp_path / "frames.h5"
    with writer_for(path, detector=made.detector, metadata=made.metadata) as writer:
        for batch in made:
            writer.append(batch)
    with orienteer.open(path) as stored:
        assert set(stored.column_names) == set(made.column_names)
        np.testing.assert_array_equal(stored.event_ids(), made.event_ids())
        np.testing.assert_array_equal(stored.read().dense(), made.read().dense())
        np.testing.assert_array_equal(stored.mask, made.mask)
        for name, column in made.read_columns().items():
            np.testing.assert_array_equal(stored.read_columns([name])[name], column)


PEAK = """
import sys
from orienteer.detector.beam import Beam
from orienteer.detector.square import square_detector
from orienteer.particle.bodies import sphere
from orienteer.simulation.experiment import Experiment
from orienteer.simulation.settings import SimulateSettings
from orienteer.source.opening import writer_for

settings = SimulateSettings(frames=int(sys.argv[1]), photons_per_frame=2000, batch=500, fluence_jitter=0.2,
                            multiple_fraction=0.1, background_photons=3, accuracy=1e-3)
detector = square_detector(20, pixel_size_m=0.004, distance_m=0.2)
made = Experiment(sphere(30), Beam(photon_energy_eV=4600), detector, settings, device="cpu")
with writer_for(sys.argv[2], detector=made.detector) as writer:
    for batch in made:
        writer.append(batch)
lines = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(int(lines["VmHWM"].split()[0]) / 1024)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_memory_does_not_grow_with_the_number_of_frames(tmp_path: Path) -> None:
    def peak_MiB(n_frames: int) -> float:
        command = [sys.executable, "-c", PEAK, str(n_frames), str(tmp_path / f"{n_frames}.h5")]
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    few, many = peak_MiB(2_000), peak_MiB(40_000)
    # The caches of the file fill up to about 20 MiB and then stay; all frames would be 60 MiB and more.
    assert many < few + 30
