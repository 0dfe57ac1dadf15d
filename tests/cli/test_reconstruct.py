"""``reconstruct`` and ``plan`` around a method that takes no time."""

import dataclasses
import signal
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orienteer
from orienteer.reconstruction.settings import EmcSettings
from orienteer.run import method
from orienteer.source.left_out import write_excluded


def test_a_run_ends_with_a_summary_and_names_the_next_command(run: Any, frames: Path, fake: Any) -> None:
    result = run("reconstruct", frames, "--out", "a run")
    assert result.status == 0, result.errors
    assert [line[:6] for line in result.errors.splitlines()] == [f"step {i}" for i in range(1, 6)]
    assert "The intensity no longer changes." in result.output
    assert "log-likelihood" in result.output
    rows = [line.strip().split(maxsplit=3) for line in result.output.splitlines()]
    assert ["halves", "agree", "to", "31 A (0.5)"] in rows
    assert ["data", "to", "25", "A"] in rows
    assert ["symmetry", "I"] in rows
    assert "halves agree on poses to" in result.output
    assert result.output.strip().endswith("orienteer plot 'a run'")
    assert orienteer.open_volume("a run/intensity.mrc").shape == (5, 5, 5)


def test_json_has_the_last_step_and_the_files(run: Any, frames: Path, fake: Any) -> None:
    report = run("reconstruct", frames, "--seed", 3, "--json").json
    assert report["finished"] is True
    assert report["iteration"] == 5
    assert report["seed"] == 3
    assert report["resolution_A"] == 25.0
    assert "radial" not in report
    assert all(Path(name).exists() for name in report["files"])


def test_models_that_a_limit_kept_from_beginning_are_told(
    run: Any, frames: Path, fake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class AskedForTwo(fake.settings):  # type: ignore[misc]
        models: int = 1

    monkeypatch.setattr(method, "_registered", {"emc": method.MethodKind("emc", AskedForTwo, fake)})
    monkeypatch.setattr(fake, "at_limit", True, raising=False)
    told = run("reconstruct", frames, "--out", "two", "--models", 2)
    in_one_line = " ".join(told.output.split())  # a table is as wide as the terminal
    assert "2 models were asked for; the limit of iterations came before model 2 was begun" in in_one_line
    report = run("reconstruct", frames, "--out", "two", "--models", 2, "--json").json
    assert any("2 models were asked for" in words for words in report["remarks"])
    second = run("phase", "two", "--model", 2)
    assert second.status == 1
    assert "raise --iterations" in second.errors
    one = run("reconstruct", frames, "--out", "one", "--json").json
    assert not any("models were asked for" in words for words in one["remarks"])


@pytest.mark.parametrize(("diameter_A", "is_coarse"), [(50.0, True), (80.0, False)])
def test_halves_that_agree_on_no_structure_of_the_particle_are_told(
    run: Any, frames: Path, fake: Any, monkeypatch: pytest.MonkeyPatch, diameter_A: float, is_coarse: bool
) -> None:
    volumes = fake.volumes

    def told_volumes(self: Any) -> list[Any]:
        return [dataclasses.replace(volumes(self)[0], metadata={"diameter_A": diameter_A})]

    monkeypatch.setattr(fake, "volumes", told_volumes)
    told = run("reconstruct", frames)
    words = "The halves agree only to 31 A, of a particle of 50 A"
    assert (words in told.errors) == is_coarse
    remarks = run("reconstruct", frames, "--json").json["remarks"]
    assert any(words in remark for remark in remarks) == is_coarse


def test_excluded_events_are_left_out_and_others_are_refused_on_the_way(
    run: Any, frames: Path, fake: Any
) -> None:
    events = orienteer.open(frames).event_ids()
    for name, which in (("first.json", events[:2]), ("second.json", events[2:4])):
        write_excluded(name, which.tolist())
    report = run("reconstruct", frames, "--exclude", "first.json", "--json").json
    assert report["frames"] == 10
    left = orienteer.Run.open("reconstruction").orientations()["event_id"]
    assert sorted(left) == sorted(events[2:])
    assert run("reconstruct", frames, "--exclude", "first.json").status == 0
    other = run("reconstruct", frames, "--exclude", "second.json")
    assert other.status == 1
    assert "events that are excluded" in other.errors


def test_a_list_of_excluded_events_of_other_data_is_told(run: Any, frames: Path, fake: Any) -> None:
    write_excluded("other.json", [2**64 - 1])
    write_excluded("empty.json", [])
    assert "nothing is left out" in run("reconstruct", frames, "--exclude", "other.json").errors
    assert "nothing is left out" not in run("reconstruct", frames, "--exclude", "empty.json").errors


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_run_says_how_to_go_on_and_goes_on(
    run: Any, frames: Path, fake: Any, number: signal.Signals, status: int
) -> None:
    whole = run("reconstruct", frames, "--out", "whole", "--json").json
    fake.stop_after, fake.stop_with = 2, number
    stopped = run("reconstruct", frames, "--out", "stopped")
    assert stopped.status == status
    assert "same command" in stopped.errors
    assert "Traceback" not in stopped.errors
    fake.stop_after = None
    resumed = run("reconstruct", frames, "--out", "stopped", "--json")
    assert [line[:6] for line in resumed.errors.splitlines() if line.startswith("step")] == [
        "step 3", "step 4", "step 5",
    ]  # fmt: skip
    assert resumed.json["log_likelihood"] == whole["log_likelihood"]


def test_a_finished_run_is_told_again_and_restart_begins_anew(run: Any, frames: Path, fake: Any) -> None:
    assert run("reconstruct", frames).status == 0
    again = run("reconstruct", frames)
    assert again.status == 0
    assert "step" not in again.errors
    assert "The intensity no longer changes." in again.output
    other = run("reconstruct", frames, "--seed", 8)
    assert other.status != 0
    assert "seed" in other.errors
    assert "--restart" in other.errors
    assert run("reconstruct", frames, "--seed", 8, "--restart", "--json").json["seed"] == 8


def test_flags_settings_and_set_reach_the_method(run: Any, frames: Path, fake: Any) -> None:
    seen: list[EmcSettings] = []
    ordinary = fake.__init__
    fake.__init__ = lambda self, source, settings, *rest: (
        seen.append(settings),
        ordinary(self, source, settings, *rest),
    )[0]
    Path("run.toml").write_text("[emc]\niterations = 7\n[simulate]\nframes = 3\n")
    assert run("reconstruct", frames, "--settings", "run.toml").status == 0
    assert run("reconstruct", frames, "--out", "b", "--settings", "run.toml", "--iterations", 9).status == 0
    assert [settings.iterations for settings in seen] == [7, 9]
    # What belongs to other commands may change between two calls.
    Path("run.toml").write_text("[emc]\niterations = 7\n[simulate]\nframes = 4\n")
    assert run("reconstruct", frames, "--settings", "run.toml").status == 0
    # The folder tells only what was used.
    assert set(tomllib.loads(Path("b/settings.toml").read_text())) == {"emc"}
    wrong = run("reconstruct", frames, "--set", "emc.iteration=3")
    assert wrong.status == 2
    assert "Did you mean 'iterations'?" in wrong.errors


def test_data_that_cannot_be_opened_leave_no_folder(run: Any, fake: Any) -> None:
    result = run("reconstruct", "absent.h5", "--out", "made")
    assert result.status == 1
    assert "absent.h5" in result.errors
    assert not Path("made").exists()


@dataclass(frozen=True)
class FakePlan:
    memory_GiB: float = 1.5

    def describe(self) -> list[tuple[str, str]]:
        return [("device", "cpu"), ("memory", f"{self.memory_GiB} GiB")]

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self) | {"device": "cpu"}


def test_plan_prints_what_was_planned(run: Any, frames: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Planned:
        plan = FakePlan()
        remarks = ("the size is a guess.",)

        def __init__(self, source: Any, settings: EmcSettings, *, device: str) -> None:
            assert (len(source), settings.iterations, device) == (12, 9, "cpu")

    monkeypatch.setattr("orienteer.reconstruction.emc.Emc", Planned)
    common = ("plan", frames, "--iterations", 9, "--device", "cpu")
    told = run(*common)
    assert "1.5 GiB" in told.output
    assert "the size is a guess." in told.errors
    told = run(*common, "--json").json
    assert told == {"memory_GiB": 1.5, "device": "cpu", "remarks": ["the size is a guess."]}


def test_a_wrong_flag_is_reported_as_it_was_typed(run: Any, frames: Path, fake: Any) -> None:
    told = run("reconstruct", frames, "--likelihood", "poison")
    assert told.status == 2
    assert "--likelihood poison:" in told.errors
    assert "Did you mean 'poisson'?" in told.errors
    assert "--set" not in told.errors
    assert run("reconstruct", frames, "--set", "emc.likelihood=poison").errors.startswith("Error: --set emc.")
    assert run("plan", frames, "--symmetry", "Q").status == 2
    assert not Path("reconstruction").exists()


def test_a_setting_that_is_true_or_false_has_two_flags(run: Any, frames: Path, fake: Any) -> None:
    for name, flag in (("a", "--halves"), ("b", "--no-halves")):
        assert run("reconstruct", frames, "--out", name, flag).status == 0
    kept = [tomllib.loads(Path(name, "settings.toml").read_text())["emc"]["halves"] for name in "ab"]
    assert kept == [True, False]


@pytest.mark.parametrize("command", ["reconstruct", "plan", "simulate"])
def test_help_names_every_option_in_full_on_a_terminal_of_80_columns(
    run: Any, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")
    shown = run(command, "--help").output
    assert max(map(len, shown.splitlines())) <= 80
    assert "…" not in shown


def test_a_folder_that_cannot_be_written_is_not_called_full(
    run: Any, frames: Path, fake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Any, *_: Any, **__: Any) -> None:
        raise OSError(30, "Read-only file system", str(path))

    monkeypatch.setattr(Path, "mkdir", refuse)
    told = run("reconstruct", frames)
    assert told.status == 1
    assert "Read-only" in told.errors
    assert "full" not in told.errors


@pytest.mark.parametrize(("n_out", "is_many"), [(0, False), (2, False), (7, True)])
def test_frames_that_were_left_out_are_told(
    run: Any, frames: Path, fake: Any, monkeypatch: pytest.MonkeyPatch, n_out: int, is_many: bool
) -> None:
    everything = fake.orientations

    def some(self: Any) -> dict[str, Any]:
        return everything(self) | {"model": np.where(np.arange(12) < n_out, -1, 0)}

    monkeypatch.setattr(fake, "orientations", some)
    result = run("reconstruct", frames)
    assert (f"{n_out} that show something other" in result.output) == (n_out > 0)
    assert ("7 of 12 frames (58 %) were left out" in result.errors) == is_many
    assert run("reconstruct", frames, "--json").json["frames_left_out"] == n_out
