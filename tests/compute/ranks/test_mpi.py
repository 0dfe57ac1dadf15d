"""Collectives of real ranks, started by mpiexec."""

from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("ranks_script.py")


@pytest.mark.parametrize(("n", "shape"), [(2, "auto"), (3, "2x2"), (4, "2x2")])
def test_ranks_join_what_they_have(run_ranks, n: int, shape: str) -> None:  # type: ignore[no-untyped-def]
    assert run_ranks(n, SCRIPT, shape).strip() == "fine"
