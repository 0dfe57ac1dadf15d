"""Posteriors over rows that lie on several ranks."""

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    "n", [pytest.param(2, marks=pytest.mark.slow(reason="three ranks do so every time")), 3]
)
def test_rows_of_several_ranks_make_the_posterior_of_one(run_ranks: Callable[..., str], n: int) -> None:
    assert run_ranks(n, Path(__file__).with_name("joining_script.py")).strip() == "fine"
