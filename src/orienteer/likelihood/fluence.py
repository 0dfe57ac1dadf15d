"""How bright each shot was: fluence of the frames relative to their mean."""

from typing import NamedTuple

import numpy as np

from orienteer.compute.arrays import Array, array_namespace, is_on_gpu, to_numpy
from orienteer.errors import OrienteerError
from orienteer.likelihood.weighted_sums import sum_over_rows

_NEWTON_STEPS = 60
# A frame this many standard deviations from the common fluence is left unchanged.
_FAR = 4.0
_CHUNK = 1 << 22


def expected_photons(responsibilities: Array, offsets: Array) -> Array:
    """Photons that a tile of rows predicts for each frame at unit fluence: sum_k P_kd u_k, (D,) float64.

    responsibilities : (T, D) float32.
    offsets : (T,) float64, u_k of the Poisson expansion without background.

    Summed over all tiles, it is the ``expected`` of :func:`update_fluence`.
    """
    return sum_over_rows(responsibilities, offsets)


def update_fluence(scored_photons: Array, expected: Array) -> Array:
    """Most likely fluence without background, (D,) float64: photons counted over photons expected.

    >>> update_fluence(np.array([6.0, 0.0]), np.array([3.0, 0.0])).tolist()
    [2.0, 0.0]
    """
    xp = array_namespace(scored_photons)
    some = expected > 0
    return xp.where(some, scored_photons / xp.where(some, expected, 1.0), 0.0)


def solve_fluence(counts: Array, signal: Array, background: Array, tolerance: float = 1e-8) -> Array:
    """Most likely fluence over a known background, (D,) float64.

    counts : (D, S) photons of the scored pixels.
    signal : (D, S) expected signal s = c W at unit fluence of each frame's pose (or mean over its poses); 0
        at pixels that the frame forbids.
    background : (S,) photons per shot.

    Solves sum_p s (K / (phi s + b) - 1) = 0.  The left side falls with phi and is convex, so Newton steps
    from the left never pass the root.  The result is 0 if the left side is negative already at phi = 0.
    """
    xp = array_namespace(counts)
    if counts.shape != signal.shape or background.shape != counts.shape[1:]:
        raise OrienteerError(
            f"counts {counts.shape}, signal {signal.shape} and background {background.shape} do not fit."
        )
    fluence = xp.empty(len(counts), dtype=xp.float64)
    background = xp.asarray(background, dtype=xp.float64)
    if not is_on_gpu(counts):
        from orienteer.likelihood import _fluence_numba as twin

        twin.solve_fluence(counts, signal, background, tolerance, _NEWTON_STEPS, fluence)
        return fluence
    step = max(1, _CHUNK // max(1, counts.shape[1]))
    for first in range(0, len(counts), step):
        chunk = slice(first, first + step)
        fluence[chunk] = solve_dense(counts[chunk], signal[chunk], background, tolerance)
    return fluence


def solve_dense(counts: Array, signal: Array, background: Array, tolerance: float) -> Array:
    """GPU twin of :func:`_fluence_numba.solve_fluence`: all frames at once, in float64."""
    xp = array_namespace(counts)
    K, s, b = counts.astype(xp.float64), xp.maximum(signal.astype(xp.float64), 0.0), background[None, :]
    # Pixels without background give a lower bound, phi >= sum K (b = 0) / sum s; it keeps phi s + b above 0.
    lit = (s > 0) & (K > 0)
    total = xp.sum(s, axis=1)
    bare = xp.sum(xp.where(lit & (b <= 0), K, 0.0), axis=1)
    phi = xp.where(total > 0, bare / xp.where(total > 0, total, 1.0), 0.0)
    for _ in range(_NEWTON_STEPS):
        expected = phi[:, None] * s + b
        ratio = xp.where(lit, s / xp.where(lit & (expected > 0), expected, 1.0), 0.0)
        slope = xp.sum(K * ratio * ratio, axis=1)
        excess = xp.sum(K * ratio, axis=1) - total
        change = xp.where(slope > 0, excess / xp.where(slope > 0, slope, 1.0), 0.0)
        new = xp.maximum(phi + change, 0.0)
        done = bool(xp.all(xp.abs(new - phi) <= tolerance * new))
        phi = new
        if done:
            break
    return phi


def expected_fluence(
    fluence: Array, noise: Array, spread: float, weights: Array, widest: float = 0.3
) -> Array:
    """Fluences shrunk towards their median, to remove scatter from noise and wrong poses, (D,) float64.

    fluence : (D,) above 0, the most likely ones.
    noise : (D,) relative variance of each from counting photons.
    spread : relative standard deviation of the true fluences; if it is above ``widest``, nothing changes.
    weights : (D,) of the frames; those of 0.5 and more determine median and scatter.

    The logarithms of the true fluences are assumed to be normal, with the given spread.  Scatter beyond this
    spread and the noise is attributed to errors of the model or the poses.  Frames that are far from all
    others, such as dark ones, do not change.

    >>> found = expected_fluence(np.array([0.9, 1.0, 1.1, 1e-3, 1.0]), np.full(5, 0.01), 0.0, np.ones(5))
    >>> found.tolist()
    [1.0, 1.0, 1.0, 0.001, 1.0]
    """
    xp = array_namespace(fluence)
    told = (weights >= 0.5) & (fluence > 0)
    if spread > widest or not bool(told.any()):
        return fluence
    logs = xp.log(xp.maximum(fluence, 1e-30))
    middle = xp.median(logs[told])
    true = float(np.log1p(spread**2))
    known = true + noise + 1e-12
    ratio = (1.4826 * xp.median(xp.abs(logs - middle)[told] / xp.sqrt(known[told]))) ** 2
    error = xp.maximum(ratio - 1, 0.0) * xp.median(known[told])
    share = true / (known + error)
    is_one_of_them = (logs - middle) ** 2 <= _FAR**2 * (known + error)
    drawn = middle + share * (logs - middle)
    return xp.where(is_one_of_them & (noise < 1), xp.exp(drawn), fluence)


def bound_fluence(
    fluence: Array, scored_photons: Array, background_photons: float = 0.0, factor: float = 4.0,
    weights: Array | None = None,
) -> Array:  # fmt: skip
    """The fluence, limited to within a factor of the estimate from the number of photons alone, (D,) float64.

    Without a limit, the fluence of a frame that fits no pose may diverge, and one such frame outweighs a
    thousand others.  A frame without photons above the background keeps a fluence that is small but not 0.

    background_photons : expected on the scored pixels of one shot.
    weights : (D,) how much each frame counts in the mean; None: all the same.
    """
    xp = array_namespace(fluence)
    # One standard deviation is the least that counts as signal: the bound must not become 0.
    noise = xp.sqrt(xp.maximum(scored_photons, 1.0))
    signal = xp.maximum(scored_photons - background_photons, noise)
    some = weights is not None and bool(xp.any(weights > 0))
    typical = xp.average(scored_photons, weights=weights if some else None)
    mean = xp.maximum(typical - background_photons, xp.sqrt(xp.maximum(typical, 1.0)))
    by_count = signal / mean
    fluence = xp.where(xp.isfinite(fluence), fluence, by_count)
    return xp.minimum(xp.maximum(fluence, by_count / factor), by_count * factor)


def normalise_fluence(fluence: Array, weights: Array | None = None) -> tuple[Array, float]:
    """(fluence with weighted mean 1, the mean it had).

    The data determine only fluence times model; the caller multiplies the model by the returned mean.
    """
    xp = array_namespace(fluence)
    w = xp.ones_like(fluence) if weights is None else weights
    total = float(xp.sum(w))
    mean = float(xp.sum(w * fluence)) / total if total > 0 else 0.0
    if not mean > 0:
        return xp.ones_like(fluence), 1.0
    return fluence / mean, mean


class FluenceGroups(NamedTuple):
    """Frames sorted into groups of similar fluence.

    order : (D,) int64, frames by rising fluence.
    bounds : (G + 1,) int64; group g is frames ``order[bounds[g]:bounds[g + 1]]``.
    fluence : (G,) float64, geometric mean of each group.
    """

    order: np.ndarray
    bounds: np.ndarray
    fluence: np.ndarray


def fluence_groups(fluence: Array, ratio: float = 1.15) -> FluenceGroups:
    """Groups within which the fluence varies by at most ``ratio``, as NumPy arrays.

    >>> groups = fluence_groups(np.array([2.0, 1.0, 2.1, 0.0]))
    >>> groups.order.tolist(), groups.bounds.tolist()
    ([3, 1, 0, 2], [0, 2, 4])

    Frames of fluence 0 join the faintest group and do not change its fluence.
    """
    if not ratio > 1:
        raise OrienteerError(f"frames cannot be grouped by a fluence ratio of {ratio}; it must be above 1.")
    phi = to_numpy(fluence).astype(np.float64)
    if not np.isfinite(phi).all():
        raise OrienteerError("some frames have a fluence that is not a finite number.")
    order = np.argsort(phi, kind="stable")
    ranked = phi[order]
    n_dark = int(np.searchsorted(ranked, 0.0, side="right"))
    if n_dark == len(phi):
        return FluenceGroups(order, np.array([0, len(phi)] if len(phi) else [0]), np.ones(min(1, len(phi))))
    logs = np.log(ranked[n_dark:])
    bounds = [0]
    while bounds[-1] < len(logs):
        bounds.append(int(np.searchsorted(logs, logs[bounds[-1]] + np.log(ratio), side="right")))
    means = np.exp(np.add.reduceat(logs, bounds[:-1]) / np.diff(bounds))
    return FluenceGroups(order, np.array([0, *(np.array(bounds[1:]) + n_dark)]), means)
