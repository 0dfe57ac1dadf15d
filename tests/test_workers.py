"""Tests that share what is made once run in one worker, others wherever there is room."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st


@pytest.fixture
def plugin(request: pytest.FixtureRequest) -> Any:
    """The file with what all tests share."""
    found = request.config.pluginmanager.get_plugin(str(Path(__file__).with_name("conftest.py")))
    assert found is not None
    return found


@pytest.fixture
def scope_of(plugin: Any) -> Callable[[str], str]:
    found: Callable[[str], str] = plugin.scope_of
    return found


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("tests/cluster/test_real_slurm.py::a", "tests/cluster/test_real_rules.py::b"),  # one server
        ("tests/validate/test_states.py::a", "tests/validate/test_validation.py::b"),  # one finished run
        ("tests/dashboard/page/test_files.py::a", "tests/dashboard/page/test_table.py::b"),  # one browser
        ("tests/test_distribution.py::a[1]", "tests/test_distribution.py::b"),  # a fixture of the module
    ],
)
def test_what_shares_something_runs_together(one: str, other: str, scope_of: Callable[[str], str]) -> None:
    assert scope_of(one) == scope_of(other) != one


def test_others_do_not(scope_of: Callable[[str], str]) -> None:
    alone = [
        "tests/test_workers.py::a[1]",
        "tests/test_workers.py::a[2]",
        "src/orienteer/errors.py::errors.f",
    ]
    assert [scope_of(one) for one in alone] == alone


def test_what_one_worker_does_alone_begins_first(plugin: Any) -> None:
    given = ["tests/a.py::b", "tests/a.py::a", "tests/validate/test_states.py::b", "tests/validate/a.py::a"]
    assert sorted(given, key=plugin.begins_late) == [*given[2:], *given[:2]]


def test_workers_are_given_tests_in_this_order(request: pytest.FixtureRequest, plugin: Any) -> None:
    late = [plugin.begins_late(item.nodeid) for item in request.session.items]
    assert late == sorted(late)


def test_a_failure_is_told_when_it_happens(plugin: Any) -> None:
    told: list[str] = []
    at_once = plugin.FailuresAtOnce(SimpleNamespace(write_line=told.append))
    for outcome in ("passed", "failed", "skipped"):
        at_once.pytest_runtest_logreport(
            pytest.TestReport("tests/a.py::b", ("tests/a.py", 1, "b"), {}, outcome, None, "call", duration=3)
        )
    assert told == ["\nFAILED tests/a.py::b (call, 3 s)"]


def test_examples_are_the_same_for_everybody_and_never_too_slow(request: pytest.FixtureRequest) -> None:
    drawn: list[list[int]] = []

    @hypothesis.given(st.lists(st.integers(), max_size=4))
    def note(numbers: list[int]) -> None:
        drawn[-1] += numbers

    for _ in range(2):
        drawn.append([])
        note()
    assert hypothesis.settings.default is not None
    assert hypothesis.settings.default.deadline is None
    assert (drawn[0] == drawn[1]) is not request.config.getoption("--slow")


def test_of_processes_that_need_the_same_kernel_one_compiles(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(
        "import os, pathlib, time, numba\n"
        "@numba.njit(cache=True)\n"
        "def double(x):\n"
        "    return 2 * x\n"
        "here = pathlib.Path(__file__).parent\n"
        "(here / f'{os.getpid()}.ready').touch()\n"
        "while len(list(here.glob('*.ready'))) < 2:\n"
        "    time.sleep(0.001)\n"
        "print(double(21), sum(double.stats.cache_misses.values()))\n"
    )
    program = [sys.executable, str(Path(__file__).with_name("compiled_once.py")), str(tmp_path / "kernel.py")]
    started = [subprocess.Popen(program, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert sorted(process.communicate()[0].split()[1] for process in started) == ["0", "1"]


def test_workers_compile_so() -> None:
    from numba.core.dispatcher import Dispatcher

    assert Dispatcher.compile.__name__ == "wait_and_look"
