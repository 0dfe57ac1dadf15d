"""The page of benchmarks and the table of the README say what bench/results says, and nothing else."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

TOOLS = Path(__file__).parents[2] / "tools"


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


def test_the_table_of_the_readme_is_what_the_results_say(writer: ModuleType) -> None:
    text = writer.README.read_text()
    assert all(mark in text for mark in writer.MARKS)
    assert text == writer.with_table(text), "run: python tools/benchmarks_page.py"


def test_every_kept_result_is_on_the_page_with_its_date_and_machine(writer: ModuleType) -> None:
    page = writer.PAGE.read_text()
    assert "not kept" not in page
    shown = {figure.result for _, subject in writer.SUBJECTS for figure in subject.FIGURES}
    names = {path.stem for path in writer.RESULTS.glob("*.json")}
    assert all(name in shown or f"`{name}.json`" in page for name in names)


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


def test_every_command_of_the_page_names_a_script_that_there_is(writer: ModuleType) -> None:
    root = TOOLS.parent
    for _, subject in writer.SUBJECTS:
        for figure in subject.FIGURES:
            words = figure.command.split()
            assert words[0] == "orienteer" or (root / words[1]).exists(), figure.command
