"""``orienteer campaign rule`` and ``work``: what is missing is named, and a worker says how it ended."""

from pathlib import Path
from typing import Any

import pytest

ADDRESS = "campaign.db"


@pytest.mark.parametrize(
    ("given", "missing"), [(("--steps", "hits"), "--out"), (("--out", "processed"), "--steps")]
)
def test_a_rule_that_is_half_given_is_told_what_is_missing(
    run: Any, given: tuple[str, str], missing: str
) -> None:
    run("campaign", "init", ADDRESS)
    told = run("campaign", "rule", ADDRESS, "routine", *given)
    assert told.status == 2
    assert f"a rule needs {missing}" in told.errors


def test_a_worker_says_that_nothing_is_left_and_which_runs_have_failed(run: Any, frames: Path) -> None:
    run("campaign", "init", ADDRESS)
    assert "Nothing is left to do." in run("campaign", "work", ADDRESS, "--once").errors
    frames.rename("r1.h5")
    run("campaign", "add", ADDRESS, "r1.h5")
    Path("r1.h5").write_bytes(b"")
    run("campaign", "rule", ADDRESS, "routine", "--steps", "hits", "--out", "processed", "--also-old")
    told = run("campaign", "work", ADDRESS, "--once")
    assert told.status == 0
    assert "Steps of r1 have failed: orienteer campaign show says why." in " ".join(told.errors.split())
