"""The mutation check: its list fits the sources, and it tells a test that notices from one that does not."""

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def load_tool() -> ModuleType:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("mutations", ROOT / "tools" / "mutations.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutations"] = module
    spec.loader.exec_module(module)
    return module


tool = load_tool()


@pytest.mark.parametrize("mutation", tool.MUTATIONS, ids=lambda m: m.meaning)
def test_the_line_that_is_broken_is_there_once_and_stays_python(mutation: tool.Mutation) -> None:
    source = (ROOT / mutation.file).read_text()
    assert source.count(mutation.original) == 1, f"{mutation.file}: {mutation.original}"
    broken = source.replace(mutation.original, mutation.broken)
    assert ast.dump(ast.parse(broken)) != ast.dump(ast.parse(source))
    assert mutation.tests
    assert all((ROOT / each.partition("::")[0]).is_file() for each in mutation.tests)


def test_twenty_lines_of_many_parts_are_broken() -> None:
    assert len(tool.MUTATIONS) == 20
    assert len({mutation.file for mutation in tool.MUTATIONS}) == 20
    assert len({Path(mutation.file).parts[2] for mutation in tool.MUTATIONS}) >= 15


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of one line with a test of it and one that holds for anything."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # which take most of the time
    root = tmp_path / "project"
    for path, text in {
        "src/orienteer/__init__.py": "",
        "src/orienteer/answer.py": "ANSWER = 42\n",
        "tests/test_answer.py": (
            "from orienteer.answer import ANSWER\n\n\ndef test_answer():\n    assert ANSWER == 42\n"
        ),
        "tests/test_anything.py": "def test_anything():\n    import orienteer.answer\n",
        "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '--import-mode=importlib'\n",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def test_a_broken_line_counts_as_caught_where_its_tests_fail_and_the_checkout_stays(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    caught = tool.Mutation("the answer", "src/orienteer/answer.py", "42", "41", ("tests/test_answer.py",))
    missed = caught._replace(tests=("tests/test_anything.py",))
    no_python = caught._replace(broken="= 42")
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    assert tool.check(project, [caught]) == [1]
    assert "1 of 1 caught" in capsys.readouterr().out
    statuses = tool.check(project, [missed, caught, no_python])
    assert [tool.is_caught(status) for status in statuses] == [False, True, False]
    assert "1 of 3 caught" in capsys.readouterr().out
    assert {path: path.read_bytes() for path in project.rglob("*") if path.is_file()} == before


def test_a_line_that_is_not_there_is_told(project: Path) -> None:
    gone = tool.Mutation("gone", "src/orienteer/answer.py", "43", "41", ("tests/test_answer.py",))
    with pytest.raises(SystemExit, match="does not hold once"):
        tool.check(project, [gone])


def test_tests_that_fail_on_the_whole_sources_are_told_first(project: Path) -> None:
    (project / "tests/test_answer.py").write_text("def test_answer():\n    raise AssertionError\n")
    mutation = tool.Mutation("the answer", "src/orienteer/answer.py", "42", "41", ("tests/test_answer.py",))
    with pytest.raises(SystemExit, match="fail before anything is broken"):
        tool.check(project, [mutation])


@pytest.mark.parametrize(
    ("status", "is_noticed"), [(0, False), (1, True), (2, False), (4, False), (-11, True)]
)
def test_failures_and_crashes_are_noticed_and_tests_that_cannot_be_run_are_not(
    status: int, is_noticed: bool
) -> None:
    assert tool.is_caught(status) == is_noticed
