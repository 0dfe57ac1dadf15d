"""Collectives of real ranks, started by mpiexec."""

from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("ranks_script.py")


@pytest.mark.parametrize(("n", "shape"), [(2, "auto"), (3, "2x2"), (4, "2x2")])
def test_ranks_join_what_they_have(run_ranks: Callable[..., str], n: int, shape: str) -> None:
    assert run_ranks(n, SCRIPT, shape).strip() == "fine"


def test_a_slow_rank_takes_fewer_items(run_ranks: Callable[..., str]) -> None:
    """Items are counted and not timed: a busy machine is slow for both ranks."""
    fast, slow = map(int, run_ranks(2, Path(__file__).with_name("balance_script.py")).split())
    assert 0 < slow <= 0.4 * (fast + slow)
