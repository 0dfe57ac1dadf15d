"""Rates: what each stage of an iteration costs on one rank, fitted to measurements.

The time of a stage is a sum over its kinds of work, each an amount times a cost per unit:

    expand  point          slices are made from the model
    score   pair, product  the matrix product, and the work per score
    posterior, fluence  pair
    merge   pair, product  the second matrix product
    insert  point          slices are put back
    compress  voxel        new models from sums, on every rank
    other   1              work of the host that does not depend on the size

The costs are those with the least relative error over all measurements.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from orienteer.scaling.problem import Work

# The kinds of work in every stage.
TERMS: dict[str, tuple[str, ...]] = {
    "expand": ("points",),
    "score": ("pairs", "products"),
    "posterior": ("pairs",),
    "fluence": ("pairs",),
    "merge": ("pairs", "products"),
    "insert": ("points",),
    "compress": ("voxels",),
    "other": ("once",),
}


@dataclass(frozen=True)
class Measured:
    """A timed iteration on one rank: its work, and the seconds of each stage."""

    work: Work
    seconds: Mapping[str, float]


@dataclass(frozen=True)
class Rates:
    """What work costs on one rank.

    costs : for each stage, seconds per unit of each kind of work.
    transform_s : seconds per voxel of a three-dimensional real Fourier transform.
    source : where the numbers come from, in words.
    error : largest relative error of the predicted time over the measurements that were fitted.
    """

    costs: Mapping[str, Mapping[str, float]]
    transform_s: float = 0.0
    source: str = ""
    error: float = field(default=0.0, compare=False)

    def seconds(self, work: Work) -> dict[str, float]:
        """Seconds of each stage."""
        return {
            stage: sum(cost * _amount(work, kind) for kind, cost in kinds.items())
            for stage, kinds in self.costs.items()
        }


def fit_rates(
    measured: Sequence[Measured], ceiling_products: float = np.inf, transform_s: float = 0.0, source: str = ""
) -> Rates:
    """The costs that predict the measurements best.

    ceiling_products : most products per second of the device; no fitted cost may be faster.
    """
    costs: dict[str, dict[str, float]] = {}
    told = {stage: [each for each in measured if each.seconds.get(stage, 0.0) > 0] for stage in TERMS}
    for stage, kinds in TERMS.items():
        if not told[stage]:
            continue
        fastest = [1 / ceiling_products if kind == "products" else 0.0 for kind in kinds]
        seconds = np.array([each.seconds[stage] for each in told[stage]])
        amounts = np.array([[_amount(each.work, kind) for kind in kinds] for each in told[stage]])
        found = _least_relative_error(amounts, seconds, np.array(fastest))
        costs[stage] = dict(zip(kinds, found.tolist(), strict=True))
    rates = Rates(costs, transform_s, source)
    errors = [
        abs(sum(rates.seconds(each.work).values()) / sum(each.seconds.values()) - 1) for each in measured
    ]
    return Rates(costs, transform_s, source, max(errors, default=0.0))


def _least_relative_error(amounts: Any, seconds: Any, lowest: Any) -> Any:
    """Costs, none below its entry in ``lowest``, for which amounts @ costs / seconds is closest to 1."""
    from scipy.optimize import lsq_linear

    scaled = amounts / seconds[:, None]
    unit = np.maximum(np.abs(scaled).max(axis=0), 1e-300)
    found = lsq_linear(scaled / unit, np.ones(len(seconds)), bounds=(lowest * unit, np.inf))
    return found.x / unit


def _amount(work: Work, kind: str) -> float:
    return 1.0 if kind == "once" else float(getattr(work, kind))
