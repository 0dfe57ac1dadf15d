"""Curves of agreement: those of a validation, and those that the run itself has recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orienteer.compare.criteria import HALF_BIT, LEVELS
from orienteer.report.opening import claim
from orienteer.report.phasing_facts import phasing_facts
from orienteer.report.plain_values import as_numbers, at
from orienteer.report.validation_facts import validation_facts
from orienteer.validate.half_maps import CURVES

_NAMES = dict(
    zip(
        CURVES,
        (
            "FSC, corrected for the mask",
            "FSC within the mask",
            "FSC without mask",
            "FSC of random phases",
            f"{HALF_BIT} criterion",
        ),
        strict=True,
    )
)


def agreement(validation: dict[str, Any], phasing: dict[str, Any], last: Mapping[str, Any]) -> dict[str, Any]:
    """Curves over q with their names, thresholds, and a sentence about what may be claimed.

    validation, phasing : contents of the files; last : the last step of the run.
    """
    facts = validation_facts(validation)
    curves = [_curve(_NAMES[name], facts.q_inv_A, values) for name, values in facts.fsc.items()]
    curves.append(
        _curve("speckles of independent halves", facts.intensity_q_inv_A, facts.intensity_correlation)
    )
    phased = phasing_facts(phasing)
    curves.append(_curve("repeatability of phases (PRTF)", phased.prtf_q_inv_A, phased.prtf))
    own = as_numbers(at(last, "radial", "half_correlation"))
    name = "half models within the run" + ("" if validation else " (not independent)")
    curves.append(_curve(name, as_numbers(at(last, "radial", "q_inv_A")), own))
    return {
        "curves": [curve for curve in curves if curve["value"]],
        "thresholds": dict(LEVELS),
        "resolution_A": facts.resolution_A,
        "words": claim(facts if validation else None),
    }


def _curve(name: str, q_inv_A: list[float | None], values: list[float | None]) -> dict[str, Any]:
    n = min(len(q_inv_A), len(values))
    return {"name": name, "q_inv_A": q_inv_A[:n], "value": values[:n]}
