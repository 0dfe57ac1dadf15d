"""The page of benchmarks and the tables of the README say what bench/results says, and nothing else."""

import argparse
import importlib.util
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TOOLS = Path(__file__).parents[2] / "tools"
ROOT = TOOLS.parent


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script that writes both."""
    monkeypatch.syspath_prepend(str(TOOLS))
    spec = importlib.util.spec_from_file_location("benchmarks_page", TOOLS / "benchmarks_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "benchmarks_page", module)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_results_say(writer: ModuleType) -> None:
    assert writer.PAGE.read_text() == writer.page(), "run: python tools/benchmarks_page.py"


def test_the_tables_of_the_readme_are_what_the_results_say(writer: ModuleType) -> None:
    text = writer.README.read_text()
    assert all(mark in text for mark in writer.MARKS)
    assert text == writer.with_table(text), "run: python tools/benchmarks_page.py"


def test_every_kept_result_is_on_the_page_with_its_date_and_machine(writer: ModuleType) -> None:
    page = writer.PAGE.read_text()
    assert "not kept" not in page
    shown = {figure.result for figure in writer.figures()} | set(writer.OTHERS)
    assert shown >= {path.stem for path in writer.RESULTS.glob("*.json")}


def test_a_figure_without_a_result_says_so(writer: ModuleType) -> None:
    figure = writer.SUBJECTS[0][1].FIGURES[0]
    missing = type(figure)(figure.what, figure.goal, "no_such_result", figure.value, figure.command)
    assert writer.measured(missing)[0] == "not measured yet"


def test_what_fell_short_is_told(writer: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "RESULTS", tmp_path)
    (tmp_path / "slow.json").write_text('{"seconds": 2.0, "machine": {"cpu": "one", "cores": 1}}')
    from benchmarks.figure import Figure, at_most  # type: ignore[import-not-found]

    for most, is_met in ((1, "**no**"), (3, "yes")):
        figure = Figure("time", at_most(most, "s"), "slow", lambda r: r["seconds"], "python bench/slow.py")
        assert writer.measured(figure) == ("**2 s**", is_met, "1 cores, one", "not kept")


def test_why_it_fell_short_is_told_of_the_result_of_which_it_is_known(
    writer: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "RESULTS", tmp_path)
    from benchmarks.figure import Figure, at_most

    figure = Figure(
        "time", at_most(1, "s"), "slow", lambda r: r["seconds"], "python bench/slow.py",
        because={"2026-11-18": "it was cold"},
    )  # fmt: skip
    for day, told in (("2026-11-18", "**2 s**; fell short because it was cold"), ("2026-11-19", "**2 s**")):
        (tmp_path / "slow.json").write_text(f'{{"seconds": 2.0, "date": "{day}"}}')
        assert writer.measured(figure)[0] == told


def test_the_readme_shows_ten_figures_at_most_and_all_that_fell_short(writer: ModuleType) -> None:
    first, _, short = writer.readme_tables().partition("\n\n")
    assert 5 <= len(first.splitlines()) - 2 <= 10
    fell_short = [figure.what for figure in writer.figures() if writer.measured(figure)[1] == writer.SHORT]
    assert fell_short
    assert [line.split(" | ")[0].removeprefix("| ") for line in short.splitlines()[2:]] == fell_short


def test_blind_runs_are_counted_object_by_object(writer: ModuleType) -> None:
    from benchmarks import emc

    told = emc.blind_table({"successes": {"virus": {"1000": "0/3"}, "blobs": {"100": "3/3", "1000": "5/5"}}})
    assert told.splitlines()[2:] == [
        "| object | 100 photons | 1 000 photons |",
        "|---|---|---|",
        "| virus | none made | 0 of 3 |",
        "| blobs | 3 of 3 | 5 of 5 |",
    ]


def test_the_settings_of_dragonfly_stand_below_its_rows(writer: ModuleType) -> None:
    from benchmarks import emc

    told = emc.settings_of_dragonfly()
    assert all(words in told for words in (" A: 3 000 frames", " B: 2 000 frames", " Early ", " late "))
    assert f"{told}\n" in writer.PAGE.read_text()


class ParsedError(Exception):
    """A script has understood its command line, and need not go on."""


def parse(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the program of a command read its options; raises ParsedError where it takes them."""
    program, *words = shlex.split(command)
    if program == "orienteer":
        import typer

        from orienteer.cli.main import app

        asked: Any = typer.main.get_command(app)
        while hasattr(asked, "commands"):
            asked = asked.commands[words.pop(0)]
        asked.make_context(asked.name, words)
        raise ParsedError

    def then_stop(parser: argparse.ArgumentParser, *given: Any) -> None:
        real(parser, *given)
        raise ParsedError

    real = argparse.ArgumentParser.parse_args
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", then_stop)
    monkeypatch.setattr(sys, "argv", words)
    runpy.run_path(str(ROOT / words[0]), run_name="__main__")


def test_every_command_of_the_page_can_be_run(writer: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    for command in writer.commands():
        if command == "python tools/mutations.py --keep":  # reads its words itself, and takes any
            continue
        with monkeypatch.context() as patched, pytest.raises(ParsedError):
            parse(command, patched)


def test_a_command_with_an_unknown_option_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit):
        parse("python bench/rotations.py --kept", monkeypatch)


def test_all_commands_are_run_but_those_that_need_what_is_not_there(writer: ModuleType) -> None:
    script = str(ROOT / "bench" / "all.py")
    said = subprocess.run([sys.executable, script, "--list"], capture_output=True, text=True, check=True)
    lines = said.stdout.splitlines()
    assert [line.removeprefix("== ") for line in lines if line.startswith("== ")] == writer.commands()
    why_not = runpy.run_path(script)["why_not"]
    assert why_not("python bench/hits.py --device cuda --keep", has_gpu=False)
    assert not why_not("python bench/hits.py --device cuda --keep", has_gpu=True)
    assert not why_not("python bench/hits.py --keep", has_gpu=False)
