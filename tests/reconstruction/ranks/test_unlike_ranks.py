"""Ranks whose processors round differently go on alike."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("unlike_script.py")


@pytest.mark.parametrize(("method", "mesh"), [("emc", "2x1"), ("mtip", "1x2"), ("states", "2x1")])
def test_ranks_that_round_differently_decide_alike(
    run_ranks: Callable[..., str], method: str, mesh: str
) -> None:
    """The numbers of one rank decide; near a threshold, ranks with their own would part, and then hang.

    Ranks of M-TIP also keep the same models and densities: phasing makes much of the last bits.
    """
    one, other = json.loads(run_ranks(2, SCRIPT, method, mesh))
    for number, (ours, theirs) in enumerate(zip(one, other, strict=True)):
        assert theirs == ours, number
