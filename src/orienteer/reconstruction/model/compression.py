"""Compression: from the sums of merged frames to new models, and how far the halves agree."""

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, array_namespace
from orienteer.orientation.point_group import PointGroup
from orienteer.reconstruction.model.autocorrelation import WienerFilter
from orienteer.reconstruction.model.relative_intensity import (
    both_friedel,
    corrected,
    n_shells_of,
    solve,
)
from orienteer.reconstruction.model.symmetry import symmetrise_sums
from orienteer.reconstruction.orienting.deposit import Deposit


@dataclass(frozen=True, eq=False)
class Compressed:
    """M models of n^3 voxels, relative to their radial mean.

    models : (H, M, n, n, n) float32, one set for each half, filtered by what the halves agree about.
    together : for each model, the cube of all frames, their exposure, and the filter (None without halves).
    half_correlation : (shells + 1,) float64, mean over the models, weighted by photons; 1 without halves.
    exposure : (n, n, n), photons that the radial mean would have given to the first model.
    prior : photons of the radial mean that every voxel of a half started with.
    brightness : factor by which ``together`` is still to be multiplied: a number, (M,) or (M, n, n, n).
    by_model : (M, shells + 1) float64, the half correlation of each model; None: the same for all.
    """

    models: Array
    together: tuple[tuple[Array, Array, WienerFilter | None], ...]
    half_correlation: NDArray[np.float64]
    exposure: Array
    prior: float
    brightness: Array | float = 1.0
    by_model: NDArray[np.float64] | None = None

    def full(self) -> Array:
        """(M, n, n, n) float32, the filtered models of all frames together; only results need them.

        The prior, which keeps voxels with few photons near the radial mean, is divided out again.  It would
        leave the speckles of faint shells with a tenth of their contrast, which no density explains.
        """
        xp = array_namespace(self.models)
        prior = len(self.models) * self.prior
        filtered = [
            values
            if keep_signal is None
            else keep_signal(values, exposure, is_half=False, told=exposure / (exposure + prior))
            for values, exposure, keep_signal in self.together
        ]
        return xp.stack(filtered).astype(np.float32) * _of_models(self.brightness, self.models)

    def brighter(self, factor: Array | float) -> "Compressed":
        """The models multiplied by a factor: a number, (M,), or (M, n, n, n)."""
        models = self.models * _of_models(factor, self.models)
        return replace(self, models=models, brightness=self.brightness * factor)

    def correlation_of(self, model: int) -> NDArray[np.float64]:
        """The correlation of the halves of one model, (shells + 1,)."""
        return self.half_correlation if self.by_model is None else np.asarray(self.by_model[model])

    def joined(self, other: "Compressed", model: int) -> "Compressed":
        """These models and one more, taken from another set."""
        xp = array_namespace(self.models)
        correlations = [self.correlation_of(m) for m in range(len(self.together))]
        return Compressed(
            xp.concatenate([self.models, other.models[:, model : model + 1]], axis=1),
            (*self.together, other.together[model]),
            self.half_correlation,
            self.exposure,
            by_model=np.stack([*correlations, other.correlation_of(model)]),
            prior=self.prior,
        )

    def change_from(self, models: Array) -> float:
        """Relative rms change of the models of the first half since ``models``, weighted by exposure."""
        difference = contrast = 0.0
        for m, (_, exposure, _) in enumerate(self.together):
            new = self.models[0, m]
            difference += float((exposure * (new - models[0, m]) ** 2).sum())
            contrast += float((exposure * (new - 1) ** 2).sum())
        return float(np.sqrt(difference / max(contrast, 1e-300)))


# For each half and each model: relative intensity (n, n, n), not filtered, and exposure (n, n, n).
Solved: TypeAlias = list[list[tuple[Array, Array]]]


def compress(deposits: list[Deposit], group: PointGroup, prior: float) -> Compressed:
    """New models from the sums of each half: made Friedel-symmetric and symmetric, solved, and filtered.

    prior : photons of the radial mean that every voxel starts with.
    """
    return filter_halves(solve_deposits(deposits, group, prior), group, prior)


def solve_deposits(deposits: list[Deposit], group: PointGroup, prior: float) -> Solved:
    """The models that follow from the sums of each half, not yet filtered."""
    solved: Solved = []
    for deposit in deposits:
        sums = [symmetrise_sums(both_friedel(accumulator.finish()), group) for accumulator in deposit.sums]
        solved.append(
            [
                (
                    solve(part, prior)
                    if deposit.models is None
                    else corrected(deposit.models[m], part, prior),
                    part[..., 1],
                )
                for m, part in enumerate(sums)
            ]
        )
    return solved


def filter_halves(solved: Solved, group: PointGroup, prior: float) -> Compressed:
    """Filter the models of each half by what the two halves agree about."""
    xp = array_namespace(solved[0][0][0])
    new, correlations, photons = [], [], []
    whole: list[tuple[Array, Array, WienerFilter | None]] = []
    for halves in zip(*solved, strict=True):
        values, exposures = [half[0] for half in halves], [half[1] for half in halves]
        exposure = sum(exposures[1:]) + exposures[0]
        photons.append(float(exposure.sum()) + 1)
        together = _mean(values, exposures, prior)
        if len(halves) == 1:
            correlations.append(np.ones(n_shells_of(together)))
            together = xp.maximum(together, xp.float32(0))
            new.append([together])
            whole.append((together, exposure, None))
            continue
        keep_signal = WienerFilter(values[0], values[1], exposure, group.order)
        correlations.append(keep_signal.correlation)
        new.append(keep_signal.filtered([(values[h], exposures[h], True) for h in range(2)]))
        whole.append((together, exposure, keep_signal))
    return Compressed(
        xp.stack([xp.stack([model[h] for model in new]) for h in range(len(solved))]),
        tuple(whole),
        np.average(correlations, axis=0, weights=photons),
        whole[0][1],
        by_model=np.stack(correlations),
        prior=prior,
    )


def _of_models(factor: Array | float, models: Array) -> Array:
    """A factor (a number, (M,) or (M, n, n, n)) in a shape that multiplies cubes."""
    factors = array_namespace(models).asarray(factor, dtype=np.float32)
    return factors if factors.ndim == 4 else factors.reshape(-1, 1, 1, 1)


def _mean(cubes: list[Array], exposures: list[Array], prior: float) -> Array:
    """The mean of cubes (n, n, n) float32, weighted by exposure plus prior."""
    total = sum(exposures[1:]) + exposures[0] + len(cubes) * prior
    weighted = [cube * ((exposure + prior) / total) for cube, exposure in zip(cubes, exposures, strict=True)]
    return (sum(weighted[1:]) + weighted[0]).astype(np.float32)
