"""Tests that share what is made once run in one worker, others wherever there is room."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


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
