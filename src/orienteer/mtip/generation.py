"""The second half of a generation: from the deposits of matched frames to models that can be sliced."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, array_namespace
from orienteer.mtip.exact_deposit import ExactDeposit
from orienteer.mtip.held_out import choose_by_halves
from orienteer.mtip.merging import merge
from orienteer.mtip.normal_equations import NormalEquations
from orienteer.mtip.relative_grid import RelativeGrid
from orienteer.orientation.point_group import PointGroup
from orienteer.reconstruction.model.compression import Compressed
from orienteer.reconstruction.model.relative_intensity import (
    both_friedel,
    by_shell,
    half_correlation,
    shell_sums,
    smoothed,
)
from orienteer.reconstruction.model.symmetry import symmetrise_sums
from orienteer.reconstruction.orienting.deposit import Deposit

# The relative intensity of speckles has a variance of 1, which is spread over the voxels of the
# autocorrelation.  One over the variance of a voxel is the natural weight that draws it to a round start.
# The weights that are tried are these multiples of it.
_TRIED = np.geomspace(0.1, 300, 10)
# Exposure counts up to this multiple of the natural weight, so that conjugate gradients need few iterations.
# Voxels with more exposure are known to a hundredth of their speckles in any case.
_MOST_EXPOSED = 100.0
_MOST_ITERATIONS = 60
# Share of the way that a model moves to what was merged.  Each half is oriented by the other: if models moved
# all the way, A would descend from B and B from A, in two alternating chains that drift apart.
_STEP = 0.7
# Added to the denominator of a shell's share, so that shells of fewer photons are hardly drawn.
_FEW_PHOTONS = 10.0
# Lower bound of the relative intensity, for dark places of noisy models.
_LEAST_INTENSITY = 0.02


@dataclass(frozen=True, eq=False)
class HalfSums:
    """Sums over the frames of a half, for one model.

    equations : normal equations of its relative autocorrelation.
    before : (n, n, n) float64, the autocorrelation that its frames were compared with.
    photons, exposure : (edge,)^3, photons that were merged, and those that the envelope alone predicts.
    """

    equations: NormalEquations
    before: Array
    photons: Array
    exposure: Array


@dataclass(frozen=True, eq=False)
class Merged:
    """Relative autocorrelations of a model.

    autocorrelations : (H, n, n, n) float64, of each half.
    halves : what they were made from.
    regularisation : in units of the natural weight, which suits a round start and the noise of photons.
    phased_best : for each half, which of its densities predicts the other half best; empty: none was phased.
    """

    autocorrelations: Array
    halves: tuple[HalfSums, ...]
    regularisation: float
    phased_best: tuple[int, ...] = ()

    @property
    def exposure(self) -> Array:
        """(edge,)^3 photons of all frames that the envelope alone predicts."""
        return sum(half.exposure for half in self.halves)


def sums_of_half(
    grid: RelativeGrid, deposit: Deposit, model: int, group: PointGroup, q_max_inv_A: float
) -> HalfSums:
    """The sums of a model from the deposit of a half."""
    assert deposit.models is not None
    sums = symmetrise_sums(both_friedel(deposit.sums[model].finish()), group)
    before = grid.autocorrelation(deposit.models[model]) / grid.sharpening
    found = half_sums(grid, before, sums[..., 0], sums[..., 1], q_max_inv_A)
    if isinstance(deposit, ExactDeposit):
        return replace(found, equations=deposit.exact[model].finish())
    return found


def half_sums(
    grid: RelativeGrid, before: Array, excess: Array, exposure: Array, q_max_inv_A: float
) -> HalfSums:
    """Sums as normal equations, in which the exposure of very bright voxels is reduced.

    before : (n, n, n) the autocorrelation whose slices the frames were compared with.
    excess, exposure : (edge,)^3 photons, as of :meth:`RelativeGrid.equations`.
    """
    intensity = grid.intensity(before)
    counted = 1 / (1 + exposure / most_exposed(grid))
    equations = grid.equations(intensity, excess * counted, exposure * counted, q_max_inv_A)
    return HalfSums(equations, before * grid.support, exposure * intensity + excess, exposure)


def most_exposed(grid: RelativeGrid) -> float:
    """Most photons that a voxel of the intensity counts with."""
    return _MOST_EXPOSED * grid.natural_weight / float(grid.box) ** 3


def merge_halves(grid: RelativeGrid, halves: list[HalfSums], tolerance: float) -> Merged:
    """Solve the equations of each half, or of all frames.

    Solutions are drawn to a round particle, as far as that predicts the frames of the other half better.
    If a half has no frames, because all show junk or another state, its model and the other half's stay.
    """
    xp = array_namespace(halves[0].before)
    equations = [half.equations for half in halves]
    if not all(each.total_weight > 0 for each in equations):
        return Merged(xp.stack([half.before for half in halves]), tuple(halves), float(_TRIED[-1]))
    unit = float(np.mean([each.total_weight for each in equations]))
    tried = _TRIED * grid.natural_weight / max(unit, 1e-300)
    options: dict[str, Any] = {
        "support": grid.spread, "tolerance": tolerance, "max_iterations": _MOST_ITERATIONS,
        "start": grid.round_start(),
    }  # fmt: skip
    if len(halves) == 1:
        single = merge(equations[0], tried, **options)
        chosen, found = single.curve.chosen, [single.autocorrelation]
    else:
        choice = choose_by_halves(equations[0], equations[1], tried, **options)
        chosen, found = choice.chosen, [each.autocorrelations[choice.chosen] for each in choice.halves]
    moved = [half.before + _STEP * (new - half.before) for half, new in zip(halves, found, strict=True)]
    return Merged(xp.stack(moved), tuple(halves), float(_TRIED[chosen]))


def drawn_to_phased(grid: RelativeGrid, merged: Merged, phased: list[Array]) -> Merged:
    """Autocorrelations moved towards those of densities, in each shell as far as the other half supports it.

    phased : for each half, (B, n, n, n) autocorrelations of its densities; the best of them is used.

    What a half has in common with the other is signal.  The share a of the step from J to the phased J' that
    best predicts the photons K of the other half, with exposure E, is

        a = sum (K - E J) (J' - J) / sum E (J' - J)^2        over a shell.
    """
    xp = array_namespace(merged.autocorrelations)
    plain = [grid.intensity(z) for z in merged.autocorrelations]
    others = merged.halves[::-1]
    width = 1 / (grid.reach_A * grid.voxel_inv_A)
    best, numbers = [], []
    for J, candidates, other in zip(plain, phased, others, strict=True):
        tried = [_Step.of(grid, z, J, other) for z in candidates]
        gains = [step.gain(width) for step in tried]
        numbers.append(int(np.argmax(gains)))
        best.append(tried[numbers[-1]])
    merged = replace(merged, phased_best=tuple(numbers))
    share = _share(
        np.sum([step.numerator for step in best], axis=0),
        np.sum([step.denominator for step in best], axis=0),
        width,
    )
    new = [
        grid.autocorrelation(J + by_shell(share, J) * step.difference) * grid.support
        for J, step in zip(plain, best, strict=True)
    ]
    # Shares that change quickly from shell to shell widen the transform, and the support cuts it off: check
    # that the result still predicts the other half better.
    worse = [_surprise(grid.intensity(z), other) for z, other in zip(new, others, strict=True)]
    if sum(worse) >= sum(_surprise(J, other) for J, other in zip(plain, others, strict=True)):
        return merged
    return replace(merged, autocorrelations=xp.stack(new))


@dataclass(frozen=True, eq=False)
class _Step:
    """From a merged intensity to a phased one.

    difference : (edge,)^3; numerator, denominator : (shells + 1,) of the share that predicts the other half.
    """

    difference: Array
    numerator: NDArray[np.float64]
    denominator: NDArray[np.float64]

    @classmethod
    def of(cls, grid: RelativeGrid, phased: Array, intensity: Array, other: HalfSums) -> "_Step":
        difference = grid.intensity(phased) - intensity
        left = (other.photons - other.exposure * intensity) * difference
        return cls(difference, shell_sums(left), shell_sums(other.exposure * difference**2))

    def gain(self, width: float) -> float:
        """By how much the step lowers the ``_surprise`` of the other half."""
        share = _share(self.numerator, self.denominator, width)
        return float((share * (2 * self.numerator - share * self.denominator)).sum())


def _share(
    numerator: NDArray[np.float64], denominator: NDArray[np.float64], width: float
) -> NDArray[np.float64]:
    """Shares from 0 to 1, smoothed over ``width`` shells; near 0 in shells of few photons."""
    from scipy.ndimage import gaussian_filter1d

    share = np.clip(smoothed(numerator) / (smoothed(denominator) + _FEW_PHOTONS), 0.0, 1.0)
    return np.asarray(gaussian_filter1d(share, width, mode="nearest"))


def _surprise(intensity: Array, half: HalfSums) -> float:
    """Squared distance of the photons of a half from the expected, over the exposure, less a constant."""
    return float((intensity * (half.exposure * intensity - 2 * half.photons)).sum())


def sliceable(grid: RelativeGrid, merged: list[Merged], roundness: Array) -> Compressed:
    """Relative intensities of autocorrelations: as they are, and sharpened for slices.

    roundness : (edge,)^3, J of a round particle.  Halves agree about its rings in any case, as far as they
        are exposed; so their agreement is measured relative to it.
    """
    xp = array_namespace(merged[0].exposure)
    n_halves = len(merged[0].autocorrelations)
    models: list[list[Array]] = [[] for _ in range(n_halves)]
    together, agreements = [], []
    for each in merged:
        plain = [grid.intensity(z) for z in each.autocorrelations]
        for half, z in zip(models, each.autocorrelations, strict=True):
            half.append(_bright(grid.intensity(z * grid.sharpening)))
        together.append((_bright(sum(plain) / n_halves), each.exposure, None))
        expected = _expected_of_round(grid, each, roundness)
        agreements.append(_agreement([J / expected for J in plain], each.exposure))
    weights = [float(each.exposure.sum()) + 1 for each in merged]
    return Compressed(
        xp.stack([xp.stack(half) for half in models]),
        tuple(together),
        np.average(agreements, axis=0, weights=weights),
        merged[0].exposure,
        prior=0.0,  # the solution is drawn to the mean instead
        by_model=np.stack(agreements),
    )


def _expected_of_round(grid: RelativeGrid, merged: Merged, roundness: Array) -> Array:
    """J that half of the frames would give for a round particle, drawn to 1 where exposure is low."""
    exposure = merged.exposure / len(merged.halves)
    drawn = merged.regularisation * grid.natural_weight / float(grid.box) ** 3
    return 1 + (roundness - 1) * exposure / (exposure + drawn)


def _agreement(halves: list[Array], exposure: Array) -> NDArray[np.float64]:
    """Correlation of the halves by shell; the centre, a single voxel, gets the value of the next shell."""
    agreement = half_correlation(halves[0], halves[-1], exposure)
    agreement[0] = agreement[1]
    return agreement


def _bright(intensity: Array) -> Array:
    """An intensity as float32, with a lower bound."""
    return intensity.clip(_LEAST_INTENSITY, None).astype(np.float32)
