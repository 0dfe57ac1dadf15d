"""Collectives of real ranks, started by mpiexec."""

from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("ranks_script.py")


@pytest.mark.parametrize(("n", "shape"), [(2, "auto"), (3, "2x2"), (4, "2x2")])
def test_ranks_join_what_they_have(run_ranks: Callable[..., str], n: int, shape: str) -> None:
    assert run_ranks(n, SCRIPT, shape).strip() == "fine"


def test_a_slow_rank_takes_fewer_items(run_ranks: Callable[..., str]) -> None:
    """Items that only wait take as long on a busy machine; three to one, halves are twice as slow."""
    static, dynamic = map(float, run_ranks(2, Path(__file__).with_name("balance_script.py")).split())
    assert static > 1.4 * dynamic
