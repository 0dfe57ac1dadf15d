"""Halves that share anything are refused, in one sentence."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from orienteer.errors import OrienteerError
from orienteer.validate.independence import HalfFacts, check_independence, facts_of

ONE = HalfFacts("half 1", np.arange(10, dtype=np.uint64), 1)
OTHER = HalfFacts("half 2", np.arange(10, 20, dtype=np.uint64), 2)


def test_halves_that_share_nothing_pass() -> None:
    check_independence(ONE, OTHER)
    check_independence(
        replace(ONE, start=(("start_file", "a"),)), replace(OTHER, start=(("start_file", "b"),))
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"event_ids": np.array([30, 7], dtype=np.uint64)}, r"share 1 frame \(such as event 7\)"),
        ({"seed": 1}, r"begin with the same random start \(seed 1\)"),
        ({"phase_seed": 9}, r"phased from the same random starts \(seed 9\)"),
        ({"start": (("start_file", "abc"),)}, r"share a start model \(start_file\)"),
        ({"support": (("support_file", "abc"),)}, r"share a support \(support_file\)"),
        ({"selection": (("selection_file", "abc"),)}, r"share a selection of frames \(selection_file\)"),
    ],
)
def test_halves_that_share_something_are_refused(change: dict[str, Any], words: str) -> None:
    by_both = ("start", "support", "selection", "phase_seed")
    shared = {name: value for name, value in change.items() if name in by_both}
    with pytest.raises(OrienteerError, match=words) as refused:
        check_independence(replace(ONE, **shared), replace(OTHER, **change))
    assert refused.value.message.count(".") <= 1 + refused.value.message.count("..")
    assert refused.value.hint


def test_a_start_of_one_half_may_not_be_the_other_half_s_under_another_name() -> None:
    first, second = (
        replace(ONE, start=(("start_file", "abc"),)),
        replace(OTHER, start=(("model_file", "abc"),)),
    )
    with pytest.raises(OrienteerError, match="share a start model"):
        check_independence(first, second)


def test_what_files_a_run_was_begun_with_is_read_from_its_description() -> None:
    run: Any = SimpleNamespace(
        path="here",
        seed=5,
        described={"files": {"background_file": "x", "start_file": "y", "support_file": "z"}},
    )
    facts = facts_of(run, np.arange(3, dtype=np.uint64))
    assert facts.start == (("start_file", "y"),)
    assert facts.support == (("support_file", "z"),)
    assert facts.selection == ()
