"""The rule by which ``auto`` chooses, and that the choice is told and kept."""

from typing import Any

import numpy as np
import pytest

import orienteer
from orienteer.mtip.settings import MtipSettings
from orienteer.reconstruction.settings import EmcSettings
from orienteer.run.choice_of_method import choose_method, photons_per_frame, shared_settings
from orienteer.run.run import Run
from orienteer.run.settings import Settings
from orienteer.source.in_memory import InMemorySource
from orienteer.source.patterns import Patterns


def frames_of(photons: float, n_frames: int = 30) -> Any:
    detector = orienteer.square_detector(8, edge_resolution_A=80.0, wavelength_A=2.5, pixel_size_m=5e-4)
    counts = np.random.default_rng(1).poisson(photons / 64, (n_frames, 64)).astype(np.int32)
    event_id = np.arange(n_frames, dtype=np.uint64)
    patterns = Patterns(counts, event_id, {"wavelength_A": np.full(n_frames, 2.5)})
    return InMemorySource(patterns, (8, 8)).with_detector(detector)


@pytest.mark.parametrize(
    ("frames", "photons", "settings", "name"),
    [
        (300, 1000, {}, "mtip"),
        (3000, 1000, {"symmetry": "D2"}, "mtip"),
        (3001, 1000, {}, "emc"),
        (300, 300, {}, "emc"),
        (300, 1000, {"symmetry": "I"}, "emc"),
        (300, 1000, {"symmetry": "auto"}, "mtip"),
        (300, 1000, {"models": 2}, "emc"),
        (300, 1000, {"models": "auto"}, "emc"),
    ],
)
def test_a_few_bright_frames_of_one_state_are_for_mtip(
    frames: int, photons: float, settings: dict[str, Any], name: str
) -> None:
    found = choose_method(frames_of(photons, frames), EmcSettings(**settings))
    assert found.name == name
    assert found.because.endswith(".")


def test_photons_are_counted_on_a_few_frames_from_all_parts() -> None:
    assert photons_per_frame(frames_of(1000, 2000)) == pytest.approx(1000, rel=0.02)


@pytest.mark.parametrize(
    "given",
    [
        EmcSettings(symmetry="I"),
        MtipSettings(symmetry="I"),
        {"symmetry": "I", "level": 4},
        {"emc": {"symmetry": "I"}},
        {"mtip": {"symmetry": "I"}},
        Settings(emc=EmcSettings(symmetry="I")),
        Settings(mtip=MtipSettings(symmetry="I")),
    ],
)
def test_what_was_said_of_either_method_counts(given: Any) -> None:
    assert shared_settings(given).symmetry == "I"
    assert shared_settings(None) == EmcSettings()


def test_a_run_says_what_was_chosen_and_why_and_goes_on_with_it(tmp_path: Any) -> None:
    source = frames_of(1000)
    settings = {"diameter_A": 200.0, "level": 2}
    run = Run.create(tmp_path / "run", source, settings, method="auto", device="cpu")
    assert run.method == "mtip"
    assert isinstance(run.settings, MtipSettings)
    assert run.described["method_because"].startswith("M-TIP was chosen")
    again = Run.create(tmp_path / "run", source, settings, method="auto", device="cpu")
    assert again.described["run_id"] == run.described["run_id"]
    other = Run.create(tmp_path / "other", source, EmcSettings(models=2), method="auto", device="cpu")
    assert other.method == "emc"
