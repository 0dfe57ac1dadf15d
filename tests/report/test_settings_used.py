"""Settings, and commands that make the same run again."""

import shlex
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import orienteer
from orienteer.phase.settings import PhaseSettings
from orienteer.report.evidence import gather
from orienteer.report.phasing_facts import PhasingFacts, phasing_facts
from orienteer.report.provenance import draw_settings
from orienteer.report.settings_used import commands, settings_of
from orienteer.run.run import Run
from orienteer.run.settings import Settings
from orienteer.settings.loading import load_settings


def overrides(command: str) -> list[str]:
    words = shlex.split(command)
    return [after for word, after in pairwise(words) if word == "--set"]


def test_the_commands_give_the_settings_of_the_run(run_folder: Path) -> None:
    evidence = gather(run_folder)
    assert evidence.phasing.value is not None
    phasing = phasing_facts(evidence.phasing.value)
    reconstruct, phase, validate, report = commands(evidence, phasing)
    assert load_settings(Settings, None, overrides(reconstruct)).emc == Run.open(run_folder).settings
    assert load_settings(Settings, None, overrides(phase)).phase.model_dump(mode="json") == phasing.settings
    words = shlex.split(reconstruct)
    assert words[:2] == ["orienteer", "reconstruct"]
    assert orienteer.open(words[2]).n_frames == 60
    assert words[words.index("--seed") + 1] == "7"
    assert "--geometry" not in words
    assert shlex.split(validate)[:3] == ["orienteer", "validate", str(run_folder)]
    assert load_settings(Settings, None, overrides(validate)).validation.replicates == 20
    assert shlex.split(report) == ["orienteer", "report", str(run_folder)]


def test_a_geometry_that_the_file_does_not_have_is_given_again(
    run_folder: Path, tmp_path: Path, made_once: Path
) -> None:
    source = orienteer.open(made_once / "frames.h5")
    detector = source.detector.moved((1e-4, 0.0, 0.0))
    moved = source.with_detector(detector)
    run = Run.create(tmp_path / "moved run", moved, Run.open(run_folder).settings, seed=1, device="cpu")
    command = commands(gather(run.path), None)[0]
    words = shlex.split(command)
    given = Path(words[words.index("--geometry") + 1])
    assert orienteer.open_detector(given) == detector


def test_only_what_differs_from_the_defaults_is_shown_first(
    run_folder: Path, read_page: Callable[[str], object]
) -> None:
    evidence = gather(run_folder)
    changed = {setting.name for setting in settings_of(evidence) if setting.differs}
    assert changed >= {"symmetry", "diameter_A", "iterations", "starts", "schedule", "support_volume_A3"}
    assert "kept_mass" not in changed
    drawn = draw_settings(evidence)
    before, _, after = drawn.partition("<details>")
    assert "emc.symmetry" in before
    assert "emc.kept_mass" not in before
    assert "emc.kept_mass" in after


def test_phasing_by_default_needs_no_word(run_folder: Path, edit: Callable[..., None]) -> None:
    defaults = PhaseSettings().model_dump(mode="json")
    edit(run_folder / "phasing.json", settings=defaults)
    phase = commands(gather(run_folder), PhasingFacts(seed=2))[1]
    assert shlex.split(phase) == ["orienteer", "phase", str(run_folder), "--seed", "2"]
