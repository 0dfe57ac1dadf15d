"""The rule by which ``auto`` chooses, and that the choice is told and kept."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import orienteer
from orienteer.mtip.settings import MtipSettings
from orienteer.reconstruction.settings import EmcSettings
from orienteer.run.choice_of_method import choose_method, shared_settings
from orienteer.run.run import Run
from orienteer.run.settings import Settings


@pytest.mark.parametrize(
    ("frames", "settings", "name"),
    [
        (300, {}, "mtip"),
        (3000, {"symmetry": "D2"}, "mtip"),
        (3001, {}, "emc"),
        (300, {"symmetry": "I"}, "emc"),
        (300, {"models": 2}, "emc"),
        (300, {"models": "auto"}, "emc"),
    ],
)
def test_few_frames_of_one_state_are_for_mtip(frames: int, settings: dict[str, Any], name: str) -> None:
    source: Any = SimpleNamespace(n_frames=frames)
    found = choose_method(source, EmcSettings(**settings))
    assert found.name == name
    assert found.because.endswith(".")


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
    detector = orienteer.square_detector(8, edge_resolution_A=80.0, wavelength_A=2.5, pixel_size_m=5e-4)
    frames = np.random.default_rng(1).poisson(1.0, (30, 64)).astype(np.int32)
    patterns = orienteer.Patterns(frames, np.arange(30, dtype=np.uint64), {"wavelength_A": np.full(30, 2.5)})
    source = orienteer.source.in_memory.InMemorySource(patterns, (8, 8)).with_detector(detector)
    settings = {"diameter_A": 200.0, "level": 2}
    run = Run.create(tmp_path / "run", source, settings, method="auto", device="cpu")
    assert run.method == "mtip"
    assert isinstance(run.settings, MtipSettings)
    assert run.described["method_because"].startswith("M-TIP was chosen")
    again = Run.create(tmp_path / "run", source, settings, method="auto", device="cpu")
    assert again.described["run_id"] == run.described["run_id"]
    other = Run.create(tmp_path / "other", source, EmcSettings(models=2), method="auto", device="cpu")
    assert other.method == "emc"
