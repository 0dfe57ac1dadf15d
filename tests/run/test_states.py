"""The states of a run in words, and those that a run has not come to."""

from typing import Any

import pytest

from orienteer.run.states import missing_models_in_words

STATE = {"occupancy": 0.5, "agrees_to_A": None}


def log(n_models: int, *, at_limit: bool = True, is_resumed: bool = False) -> list[dict[str, Any]]:
    states = [STATE] * n_models if n_models > 1 else []  # nothing is told of one model alone
    events: list[dict[str, Any]] = [{"event": "started"}, {"event": "step", "iteration": 1, "states": states}]
    events.append({"event": "finished", **({"at_limit": True} if at_limit else {})})
    return [*events, {"event": "resumed"}] if is_resumed else events


@pytest.mark.parametrize(("asked", "begun"), [(2, 1), (5, 3)])
def test_a_limit_before_the_last_model_is_told(asked: int, begun: int) -> None:
    assert missing_models_in_words({"models": asked}, log(begun)) == (
        f"{asked} models were asked for; the limit of iterations came before model {begun + 1} was begun: "
        "raise --iterations, the same command goes on."
    )


@pytest.mark.parametrize(
    ("asked", "events"),
    [
        (1, log(1)),
        (2, log(2)),
        ("auto", log(1)),
        (2, log(1, at_limit=False)),
        (2, log(1, is_resumed=True)),
        (2, []),
    ],
)
def test_nothing_is_told_of_other_runs(asked: int | str, events: list[dict[str, Any]]) -> None:
    assert missing_models_in_words({"models": asked}, events) == ""


def test_a_method_without_models_misses_none() -> None:
    assert missing_models_in_words({}, log(1)) == ""
