"""The section on several states: frames of each, how sure their assignment is, and the resolutions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from orienteer.report.curves import histogram
from orienteer.report.evidence import Evidence
from orienteer.report.figure import chart_figure, facts, figures, missing, remarks
from orienteer.report.markup import Content, Markup, element, joined
from orienteer.report.plain_values import as_number, as_tables
from orienteer.report.validation_facts import StateFacts, ValidationFacts
from orienteer.report.words import number, sentence, with_angstrom

# A frame counts as sure of its state if the probability of that state is at least this.
_SURE = 0.95


def n_states(evidence: Evidence) -> int:
    """Number of models in the result of the run; 0 if there is none yet."""
    return len(evidence.intensities.value or ())


def draw_states(evidence: Evidence, validation: ValidationFacts | None) -> Markup:
    """The section; only a run with several models has one."""
    last = evidence.steps[-1] if evidence.steps else {}
    told = as_tables(last.get("states"))
    table = evidence.orientations.value or {}
    probability = np.asarray(table.get("state_probability", np.zeros((0, 0))), np.float64)
    shown = np.asarray(table.get("model", np.zeros(0)))
    if probability.ndim != 2 or not len(probability) or len(shown) != len(probability):
        return missing(evidence.orientations.missing or "Nothing is known about the states of single frames.")
    held = validation.states if validation is not None else []
    head = ["State", "Frames", "Share", "Sure of it", "The two halves of the run agree to"]
    head += ["Independent halves agree to"] if held else []
    rows = []
    for m in range(probability.shape[1]):
        own = probability[shown == m, m]
        inside = told[m] if m < len(told) else {}
        cells = [
            str(m + 1),
            f"{len(own):,}",
            _percent(as_number(inside.get("occupancy"))),
            _percent(float((own >= _SURE).mean()) if len(own) else None),
            _to(as_number(inside.get("agrees_to_A"))),
        ]
        cells += [_independent(held, m)] if held else []
        rows.append(element("tr", *(element("td", cell) for cell in cells)))
    heads = element("tr", *(element("th", words, scope="col") for words in head))
    drawn = element("table", element("thead", heads), element("tbody", *rows))
    words = (
        f"Sure of it: frames whose state has a probability of at least {100 * _SURE:g} %, over all poses. "
        "orientations.h5 holds the state of each frame (model) and all probabilities (state_probability)."
    )
    notes = [sentence(with_angstrom(str(step["note"]))) for step in evidence.steps if step.get("note")]
    parts = [drawn, element("p", words, class_="quiet"), figures(_confidence(probability, shown))]
    parts += [facts(_counts(shown)), remarks(notes)]
    return joined(parts)


def _confidence(probability: NDArray[np.float64], shown: NDArray[np.int64]) -> Markup | None:
    own = probability[shown >= 0].max(axis=1)
    chart = histogram("state-confidence", "How surely frames show their state", "probability", own)
    return chart_figure(chart, "The probability of each frame's likeliest state, over all poses.")


def _counts(shown: NDArray[np.int64]) -> list[tuple[str, Content]]:
    left = int((shown < 0).sum())
    return [("Frames in none of the states", f"{left:,} of {len(shown):,}")]


def _independent(held: Sequence[StateFacts], m: int) -> str:
    if m >= len(held):
        return "not compared"
    is_doubtful = held[m].resolution_A is not None and not held[m].is_distinct
    return _to(held[m].resolution_A) + (", but agrees with another state as well" if is_doubtful else "")


def _percent(share: float | None) -> str:
    return "not known" if share is None else f"{100 * share:.3g} %"


def _to(resolution_A: float | None) -> str:
    return "nowhere" if resolution_A is None else f"{number(resolution_A)} Å"
