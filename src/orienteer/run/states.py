"""The states of a run in words: the share of frames that shows each, and how far its halves agree."""

from collections.abc import Mapping, Sequence
from typing import Any

from orienteer.run.events import STEP


def occupancies_in_words(states: Sequence[Mapping[str, float | None]]) -> str:
    """The share of the frames in each of a step's ``states``; empty if there is only one state.

    >>> occupancies_in_words([{"occupancy": 0.947}, {"occupancy": 0.053}])
    '95 % + 5.3 %'
    """
    return " + ".join(_percent(state["occupancy"] or 0.0) for state in states)


def states_in_words(states: Sequence[Mapping[str, float | None]]) -> str:
    """The same, with the resolution to which the halves of each state agree.

    >>> states_in_words([{"occupancy": 0.6, "agrees_to_A": 28.53}, {"occupancy": 0.4, "agrees_to_A": None}])
    '1: 60 %, halves agree to 28.5 A; 2: 40 %, halves show no agreement'
    """
    parts = []
    for number, state in enumerate(states, start=1):
        agrees_to_A = state.get("agrees_to_A")
        halves = "show no agreement" if agrees_to_A is None else f"agree to {agrees_to_A:.3g} A"
        parts.append(f"{number}: {_percent(state['occupancy'] or 0.0)}, halves {halves}")
    return "; ".join(parts)


def missing_models_in_words(section: Mapping[str, Any], events: Sequence[Mapping[str, Any]]) -> str:
    """One sentence if a limit has ended a run with fewer models than were asked for; else empty.

    section : the settings of the method; events : the log of the run.

    >>> log = [{"event": "step", "states": []}, {"event": "finished", "at_limit": True}]
    >>> missing_models_in_words({"models": 2}, log)  # doctest: +ELLIPSIS
    '2 models were asked for; the limit of iterations came before model 2 was begun: raise --iterations, ...'
    >>> missing_models_in_words({"models": 1}, log)
    ''
    """
    asked = section.get("models")
    turns = [event for event in events if event["event"] in ("started", "resumed", "finished")]
    if not isinstance(asked, int) or not turns or not turns[-1].get("at_limit"):
        return ""
    steps = [event for event in events if event["event"] == STEP]
    begun = max(1, len(steps[-1].get("states") or ())) if steps else 0
    if begun >= asked:
        return ""
    return (
        f"{asked} models were asked for; the limit of iterations came before model {begun + 1} was begun: "
        "raise --iterations, the same command goes on."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.995 else "100 %"
