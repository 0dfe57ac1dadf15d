"""The command line as a whole: help, exit statuses, errors in one sentence, no traceback."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orienteer.errors import FileError
from orienteer.run.signals import RunInterrupted, RunTerminated

COMMANDS = [
    "demo", "simulate", "inspect", "plan", "reconstruct", "plot", "compare", "convert", "rotations",
    "settings", "doctor", "bench",
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(run: Any, command: str) -> None:
    result = run(command, "--help")
    assert result.status == 0
    assert "--json" in result.output
    assert "<bool>" not in result.output  # a flag takes no value
    assert "range>" not in result.output  # values of options are called what those of settings are
    assert "<str>" not in result.output.partition("Options")[2]


def test_the_help_is_a_table_of_contents_in_the_order_of_the_work(run: Any) -> None:
    words = run("--help").output
    commands = re.findall(r"^\W (\w+) {2,}\w", words, re.MULTILINE)
    in_order = ["demo", "simulate", "hits", "reconstruct", "phase", "validate", "report", "live", "campaign"]
    assert [command for command in commands if command in in_order] == in_order
    assert words.index("2. Have data") < words.index("3. Find the intensity") < words.index("4. Find")


def test_the_version_is_that_of_the_package(run: Any) -> None:
    import orienteer

    assert run("--version").output.strip() == f"orienteer {orienteer.__version__}"


@pytest.mark.parametrize(
    "arguments",
    [
        ["simulat"],
        ["simulate", "--frame", "3"],
        ["rotations", "--level", "many"],
        ["rotations", "--level", "1", "--symmetry", "X"],
        ["inspect"],
    ],
)
def test_a_wrong_command_line_leaves_with_status_2_in_words_or_json(run: Any, arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.status == 2
    assert result.output == ""
    assert "Traceback" not in result.errors
    result = run(*arguments, "--json")
    assert result.status == 2
    assert result.json["error"]
    assert result.errors == ""


def test_json_changes_no_other_way_to_leave(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Usage" in run("rotations", "--json", "--help").output
    assert run("rotations", "--json", "--help").status == 0
    assert run("rotations", "--level", 1, "--json").status == 0

    def interrupted(path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("orienteer.cli.inspect.kind_of", interrupted)
    result = run("inspect", "anything", "--json")
    assert result.status == 130
    assert result.errors.strip() == "Stopped."


@pytest.mark.parametrize(
    "arguments", [["inspect", "absent.h5"], ["convert", "absent.cxi", "out.h5"], ["simulate", "absent.pdb"]]
)
def test_a_missing_file_is_one_sentence_that_names_it(run: Any, arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.status == 1
    assert "absent." in result.errors
    assert "Traceback" not in result.errors
    assert len(result.errors.strip().splitlines()) <= 2


def test_errors_are_json_when_json_was_asked_for(run: Any) -> None:
    result = run("inspect", "absent.h5", "--json")
    assert result.status == 1
    assert "absent.h5" in result.json["error"]


def test_debug_shows_where_an_error_came_from_at_any_place(run: Any) -> None:
    for arguments in (["--debug", "inspect", "absent.h5"], ["inspect", "absent.h5", "--debug"]):
        assert "Traceback" in run(*arguments).errors


def test_a_setting_out_of_range_or_mistyped_leaves_with_status_2(run: Any) -> None:
    result = run("simulate", "--set", "simulate.framse=3")
    assert result.status == 2
    assert "Did you mean 'frames'?" in result.errors
    result = run("simulate", "--frames", "ten")
    assert result.status == 2
    assert "valid integer" in result.errors


def test_a_defect_is_admitted_without_a_traceback(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orienteer.cli.inspect.kind_of", lambda path: 1 / 0)
    result = run("inspect", "anything")
    assert result.status == 1
    assert "Orienteer has a defect: ZeroDivisionError" in result.errors
    assert "Traceback" not in result.errors


def test_ctrl_c_is_not_an_error_report(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("orienteer.cli.inspect.kind_of", interrupted)
    result = run("inspect", "anything")
    assert result.status == 130
    assert result.errors.strip() == "Stopped."


@pytest.mark.parametrize(
    ("stop", "status", "said"),
    [
        (KeyboardInterrupt(), 130, "Stopped."),
        (
            RunInterrupted("Stopped.", "The same command resumes it."),
            130,
            "Stopped. The same command resumes it.",
        ),
        (RunTerminated("Stopped.", "Go on.", signal.SIGTERM), 143, "Stopped. Go on."),
    ],
)
def test_a_stop_while_a_class_is_being_made_is_no_defect(
    run: Any, monkeypatch: pytest.MonkeyPatch, stop: BaseException, status: int, said: str
) -> None:
    """Python 3.11 makes a RuntimeError of it, which happens while libraries are loaded."""

    def wrapped(path: Path) -> None:
        raise RuntimeError("Error calling __set_name__") from stop

    monkeypatch.setattr("orienteer.cli.inspect.kind_of", wrapped)
    result = run("inspect", "anything")
    assert result.status == status
    assert result.errors.strip() == said


def test_square_brackets_in_file_names_are_printed_as_they_are(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise FileError(path, "is [bold]odd[/].")

    monkeypatch.setattr("orienteer.cli.inspect.kind_of", refuse)
    assert "run[3].h5: is [bold]odd[/]." in run("inspect", "run[3].h5").errors


def test_the_module_runs_too_and_a_closed_pipe_is_met_with_silence() -> None:
    command = f"{sys.executable} -m orienteer rotations --level 2 --json | head -c 1"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert (result.stdout, result.stderr) == ("{", "")


def test_a_picture_or_a_list_never_replaces_data(run: Any, frames: Path) -> None:
    before = frames.read_bytes()
    for line in (["inspect", frames, "--picture", frames], ["settings", "--out", frames]):
        assert run(*line).status == 1
    assert run("rotations", "--level", 1, "--out", frames).status == 1
    assert frames.read_bytes() == before


def test_the_numbers_come_even_when_the_picture_cannot_be_written(run: Any, frames: Path) -> None:
    result = run("inspect", frames, "--picture", "absent/picture.png")
    assert result.status == 1
    assert "photons per frame" in result.output
    assert "absent/picture.png" in result.errors


@pytest.mark.parametrize("name", ["a [b] c.h5", "a[bold].h5", "$x_$.h5"])
def test_odd_file_names_are_printed_and_drawn_as_they_are(run: Any, name: str) -> None:
    made = run("simulate", "sphere", "--frames", 2, "--set", "detector.pixels=8", "--out", name)
    assert made.status == 0, made.errors
    assert f"Written to {name}." in made.output
    assert run("inspect", name).status == 0
    assert Path(f"{name}.png").exists()


def test_a_terminal_without_unicode_still_shows_the_numbers(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "orienteer"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "120"}
    for line in ("simulate sphere --frames 2 --set detector.pixels=8", "inspect frames.h5 --no-picture"):
        result = subprocess.run([*command, *line.split()], cwd=tmp_path, env=environment, capture_output=True)
        assert result.returncode == 0, result.stderr
    assert b"lit pixels" in result.stdout


def test_a_list_that_is_none_gets_an_example(run: Any) -> None:
    assert "Write a list" in run("simulate", "--set", "particle.conformations=other.pdb").errors


def test_settings_of_an_integrating_detector_are_not_ignored_in_silence(run: Any) -> None:
    result = run("simulate", "sphere", "--saturation-photons", 3)
    assert result.status == 2
    assert "integrating" in result.errors


def test_a_folder_that_may_not_be_entered_is_no_defect(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", "closed/run.json")

    monkeypatch.setattr("orienteer.cli.inspect.kind_of", refuse)
    result = run("inspect", "closed")
    assert result.status == 1
    assert "closed/run.json: permission denied." in result.errors
    assert "Check the permissions" in result.errors
    assert "defect" not in result.errors


def test_a_full_disk_is_no_defect(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("orienteer.cli.inspect.kind_of", fail)
    result = run("inspect", "anything")
    assert result.status == 1
    assert "the disk is full" in result.errors


def test_an_option_that_is_a_setting_is_told_how_to_be_given(run: Any) -> None:
    result = run("simulate", "particle.pdb", "--photon-energy-eV", "4600", "--json")
    assert result.status == 2
    assert "--set beam.photon_energy_eV=VALUE" in result.output
    assert "Value error" not in run("simulate", "particle.pdb", "--device", "tpu", "--json").output
