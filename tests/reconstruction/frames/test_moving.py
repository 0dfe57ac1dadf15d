"""Frames that ranks have read for each other."""

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_frames_of_other_ranks_arrive_whole_and_take_no_memory_but_their_own(
    run_ranks: Callable[..., str], layout: str
) -> None:
    assert float(run_ranks(3, Path(__file__).with_name("gathering_script.py"), layout)) < 1.5


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("n", [2, 4])
def test_every_frame_comes_whole_to_the_rank_that_it_belongs_to(
    run_ranks: Callable[..., str], n: int, layout: str
) -> None:
    assert run_ranks(n, Path(__file__).with_name("moving_script.py"), layout).strip() == "fine"
