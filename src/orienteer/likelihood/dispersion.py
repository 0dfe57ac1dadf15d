"""How much more than Poisson the counts scatter about the model, by resolution shell: eps^2 = 1/r."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, array_namespace, is_on_gpu, to_numpy
from orienteer.errors import OrienteerError

_CHUNK = 1 << 22
# A frame that scatters this many robust standard deviations more than the rest shows something else than the
# model (junk, two particles).
_OUTLIER = 6.0
# A shell is the median of up to _PARTS estimates from parts of the frames, each with a sum of lambda^2 of at
# least _INFORMATION_PER_PART.
_PARTS, _INFORMATION_PER_PART = 15, 25.0


class DispersionSums(NamedTuple):
    """Sums over the pixels of each shell, for each frame; (D, n_shells) float64 each.

    excess : (K - lambda)^2 - lambda, whose mean is eps^2 lambda^2.
    square : lambda^2.
    photons : lambda.
    residual : K - lambda.
    """

    excess: NDArray[np.float64]
    square: NDArray[np.float64]
    photons: NDArray[np.float64]
    residual: NDArray[np.float64]


def dispersion_sums(counts: Array, expected: Array, shell: Array, n_shells: int) -> DispersionSums:
    """The sums of one batch of frames that dispersion is estimated from; NumPy arrays from either device.

    counts : (D, S) photons.  Pixels that a frame forbids must have ``expected`` and ``counts`` 0.
    expected : (D, S) photons expected at each frame's pose and fluence (or mean over its poses).
    shell : (S,) integers below ``n_shells``.
    """
    if counts.shape != expected.shape or shell.shape != counts.shape[1:]:
        raise OrienteerError(
            f"counts {counts.shape}, expected {expected.shape} and shells {shell.shape} do not fit."
        )
    xp = array_namespace(counts)
    sum_shells = _shell_summer(xp.asarray(shell), n_shells)
    sums = np.zeros((4, len(counts), n_shells))
    step = max(1, _CHUNK // max(1, counts.shape[1]))
    for first in range(0, len(counts), step):
        chunk = slice(first, first + step)
        lam = expected[chunk].astype(xp.float64)
        residual = counts[chunk].astype(xp.float64) - lam
        terms = xp.stack([residual * residual - lam, lam * lam, lam, residual])
        sums[:, chunk] = sum_shells(terms)
    return DispersionSums(*sums)


def _shell_summer(shell: Array, n_shells: int) -> Callable[[Array], NDArray[np.float64]]:
    """A function that sums numbers (..., S) over the pixels of each shell, to (..., n_shells).

    Each shell is summed by itself: differences of a running sum would lose faint shells in the rounding of
    bright ones.
    """
    xp = array_namespace(shell)
    if is_on_gpu(shell):
        member = (shell[:, None] == xp.arange(n_shells)).astype(xp.float64)
        return lambda terms: to_numpy(terms @ member)
    order = np.argsort(shell, kind="stable")
    present, starts = np.unique(shell[order], return_index=True)

    def sums(terms: Array) -> NDArray[np.float64]:
        result = np.zeros((*terms.shape[:-1], n_shells))
        result[..., present] = np.add.reduceat(terms[..., order], starts, axis=-1)
        return result

    return sums


def join_sums(parts: list[DispersionSums]) -> DispersionSums:
    """The frames of all batches, one after another."""
    return DispersionSums(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def estimate_dispersion(sums: DispersionSums, maximum: float = 10.0) -> NDArray[np.float64]:
    """eps^2 of each shell, (n_shells,) float64, from 0 to ``maximum``.

    eps^2 = sum[(K - lambda)^2 - lambda] / sum lambda^2, made robust in two ways: frames that scatter far more
    than the rest are left out, and each shell is the median of several disjoint parts of the frames, so that
    a few hot pixels do not change it.  A part holds frames that scatter alike in the other shells: frames of
    something else then share a few parts, even if each is too faint to be recognised.  Neighbouring shells
    are averaged (1:2:1, by their precision) before negative values become 0.
    """
    kept = usable_frames(sums)
    sums = DispersionSums(*(array[kept] for array in sums))
    excess, square, photons, _ = sums
    rank = _rank_by_other_shells(sums)
    information = square.sum(axis=0)
    # Variance of the estimate: for Poisson counts var(excess) = 2 lambda^2 + lambda.
    some = information > 0
    precision = np.where(
        some, information**2 / np.where(some, 2 * information + photons.sum(axis=0), 1.0), 0.0
    )
    ratio = np.array([_median_of_parts(excess[order, s], square[order, s]) for s, order in enumerate(rank.T)])
    return np.clip(_smooth(ratio, precision), 0.0, maximum)


def usable_frames(sums: DispersionSums) -> NDArray[np.bool_]:
    """Frames whose scatter about the model, over all shells, is like that of the others: (D,) bool."""
    square = sums.square.sum(axis=1)
    lit: NDArray[np.bool_] = square > 0
    ratio = np.zeros(len(square))
    ratio[lit] = sums.excess.sum(axis=1)[lit] / np.sqrt(2 * square + sums.photons.sum(axis=1))[lit]
    if not lit.any():
        return lit
    # Bright frames deviate more for the same eps^2; measure each against the trend with its own signal.
    signal = np.where(lit, square / np.sqrt(2 * square + sums.photons.sum(axis=1) + (~lit)), 0.0)
    slope = np.median(ratio[lit] / signal[lit])
    deviation = ratio - slope * signal
    centre = np.median(deviation[lit])
    spread = 1.4826 * np.median(np.abs(deviation[lit] - centre))
    # Poisson alone gives a spread of 1; a smaller one is chance.
    kept: NDArray[np.bool_] = lit & (deviation - centre <= _OUTLIER * max(spread, 1.0))
    return kept


def _rank_by_other_shells(sums: DispersionSums) -> NDArray[np.int64]:
    """(D, n_shells): for each shell, the frames ordered by how badly they fit in all other shells.

    A frame of something else has too many photons in some shells and too few in others.  The shell itself is
    left out: estimates from parts in this order would otherwise be biased.
    """
    excess, square, photons, residual = sums
    information = square.sum(axis=0)
    typical = np.maximum(excess.sum(axis=0) / np.where(information > 0, information, 1.0), 0.0)
    variance = photons + typical * square
    some = variance > 0
    strange = np.where(some, residual**2 / np.where(some, variance, 1.0), 0.0)
    return np.argsort(strange.sum(axis=1, keepdims=True) - strange, axis=0, kind="stable")


def _median_of_parts(excess: NDArray[np.float64], square: NDArray[np.float64]) -> float:
    """Median of sum(excess) / sum(square) over parts of consecutive frames."""
    information = square.sum()
    if information <= 0:
        return 0.0
    n_parts = int(np.clip(information / _INFORMATION_PER_PART, 1, min(_PARTS, len(square))))
    n_parts -= 1 - n_parts % 2  # odd, so that the median is one of them
    starts = np.arange(n_parts) * len(square) // n_parts
    sums = np.add.reduceat(np.stack([excess, square]), starts, axis=1)
    lit = sums[1] > 0
    return float(np.median(sums[0, lit] / sums[1, lit]))


def _smooth(ratio: NDArray[np.float64], precision: NDArray[np.float64]) -> NDArray[np.float64]:
    """1:2:1 averages weighted by precision; a shell of precision 0 takes the value of its neighbours."""
    weighted = np.pad(ratio * precision, 1)
    weights = np.pad(precision, 1)
    above = weighted[:-2] + 2 * weighted[1:-1] + weighted[2:]
    below = weights[:-2] + 2 * weights[1:-1] + weights[2:]
    return np.where(below > 0, above / np.where(below > 0, below, 1.0), 0.0)
