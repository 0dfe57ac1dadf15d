"""Wiener filter of a merged intensity: keep what two halves agree about.

The transform of an intensity is the autocorrelation of the particle.  It ends at the diameter of the
particle, while the noise of voxels extends to the end of the box.  The diameter need not be known: where the
autocorrelations of the two halves do not agree, there is no signal.  So the fine voxels that interpolation
needs do not cost signal over noise.
"""

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, array_namespace
from orienteer.reconstruction.model.cube_transform import common_sums, filtered, halved, transformed, whole
from orienteer.reconstruction.model.relative_intensity import (
    by_shell,
    half_correlation,
    n_shells_of,
    n_voxels_of_shells,
    shell_covariances,
    shell_means,
    shell_sums,
    shells_of,
    smoothed,
)

# Largest error of a gain when the gains of all shells are approximated by a few common factors.
_GAIN_ERROR = 0.01
# Least intensity of a model that frames are compared with: otherwise single photons at dark places, where the
# filter overshoots, would decide about poses.
LEAST_INTENSITY = 0.02
# Least intensity of a result: no place is so dark that no photon could ever come from it.
_DARKEST = 1e-3
# Least weight of a shell, so that what leaks in from its neighbours is not taken for its own.
_LEAST_KNOWN = 0.02
# Least weight of a shell whose contrast is restored: with a smaller share, nothing is left to restore.
_LEAST_TOLD = 1e-4
# Correlation of the unfiltered halves above which it is a good measure of the noise.
_AGREE_AS_THEY_ARE = 0.5
# A covariance of a shell says nothing below this many standard errors.
_CHANCE = 3.0
# Largest contrast, relative to the mean: 1 for fully developed speckles, 2^0.5 for a symmetric particle.
_LARGEST_CONTRAST = 2**0.5


class WienerFilter:
    """Keeps S(r) / (S(r) + N(q)) of every deviation from the shell means.

    S is the power of the signal at each distance r of the autocorrelation.  N is the noise over the signal in
    each shell q of the intensity.  Both are measured from two halves.

    order : order of the point group that the cubes were averaged over.
    contrast : (shells,) rms deviation of the signal from the mean of its shell.
    power : (distances,) S at each distance in voxels of the autocorrelation, with a mean of 1 over the box.
    noise : (shells,) N, noise over signal in a voxel of one half.
    correlation : (shells,) of the filtered halves about the shell means.  Filtered halves also agree about
        what leaks into a shell from its neighbours.  So it is limited to what follows from the correlation of
        the unfiltered halves and the gain of the filter in signal over noise.
    """

    def __init__(self, first: Array, second: Array, exposure: Array, order: int = 1) -> None:
        first, second, exposure = halved([first, second, exposure])
        halves = [_deviation(values, exposure)[0] for values in (first, second)]
        cross, *squares = shell_covariances(first, second, exposure)
        as_they_came = _of_whole_shells(cross / np.sqrt(np.maximum(squares[0] * squares[1], 1e-300)))
        raw = np.clip(smoothed(as_they_came), 1e-4, 1.0)
        self.noise = (1 - raw) / raw
        most_noise = np.where(raw > _AGREE_AS_THEY_ARE, self.noise, np.inf)
        self.contrast = _contrast(cross, squares, n_voxels_of_shells(first) / order)
        ones = np.ones_like(self.noise)
        for _ in range(2):
            # Scaled so that shells with little contrast are not lost beside others, nor good ones in noise.
            scale = 1 / self.contrast / (1 + self.noise)
            self.power, number = _common_power(*(transformed(half, scale) for half in halves))
            a, b = self._filter(halves, [ones, ones])
            agreement = _of_whole_shells(half_correlation(a, b, exposure))
            # How much more of the signal than of the noise the filter keeps.
            gain = self.power / (self.power + 1)
            kept = (number * self.power * gain**2).sum() / max((number * gain**2).sum(), 1e-300)
            agreed = np.clip(smoothed(agreement), 1e-4, 1.0)
            # If unfiltered voxels agree better than filtered ones, the difference has leaked in.
            self.noise = np.minimum((1 - agreed) / agreed * kept, most_noise)
        came = np.clip(smoothed(smoothed(as_they_came)), -0.99, 1.0)
        # A correlation that is negative by chance means no signal; the filter does not change it.
        gained = np.where(came > 0, kept * came / (kept * came.clip(0) + 1 - came), came)
        self.correlation = np.minimum(agreement, gained)

    def __call__(
        self, values: Array, exposure: Array, *, is_half: bool = True, told: Array | None = None
    ) -> Array:
        """The filtered cube (n, n, n) float32.

        is_half : whether the values have the noise of one half, or that of both together.  Frames are
            compared with halves only; in a model of all frames, dark places may be dark.
        told : (n, n, n), the share of each voxel's deviation that the frames contributed, beside the prior
            that pulls it to the mean of its shell; None: all.  Over the voxels of a speckle, the rest is
            restored.
        """
        least = LEAST_INTENSITY if is_half else _DARKEST
        return self.filtered([(values, exposure, is_half)], least, told)[0]

    def filtered(
        self,
        cubes: list[tuple[Array, Array, bool]],
        least: float = LEAST_INTENSITY,
        told: Array | None = None,
    ) -> list[Array]:
        """Several filtered cubes, given values, exposure and is_half of each: faster than one by one.

        least : lower limit of the values; told : as above, for all cubes.
        """
        n, told_too = len(cubes), [] if told is None else [told]
        alike = halved([cube for values, exposure, _ in cubes for cube in (values, exposure)] + told_too)
        values, exposures = alike[: 2 * n : 2], alike[1 : 2 * n : 2]
        parts = [_deviation(*pair) for pair in zip(values, exposures, strict=True)]
        noise = [self.noise if is_half else self.noise / 2 for _, _, is_half in cubes]
        kept = self._filter([deviation for deviation, _ in parts], noise, alike[-1] if told_too else None)
        xp = array_namespace(kept[0])
        # A shell without any exposure stays at its mean, whatever leaks in from its neighbours.
        shown = [by_shell(shell_sums(exposure) > 0, kept[0]) for exposure in exposures]
        return [
            whole(xp.maximum(mean + deviation * seen, np.float32(least)))
            for (_, mean), deviation, seen in zip(parts, kept, shown, strict=True)
        ]

    def _filter(
        self, deviations: list[Array], noise: list[NDArray[np.float64]], told: Array | None = None
    ) -> list[Array]:
        """Keep S / (S + noise) of deviations, with shells weighted by how well they are known.

        The result is divided by the weights, filtered in the same way.  If ``told`` is given, these shares
        are weights, too: the sum of photons over that of exposures, within a speckle.
        """
        cube = deviations[0]
        xp = array_namespace(cube)
        known = np.maximum(1 / (1 + self.noise), _LEAST_KNOWN)
        transforms = [transformed(deviation, known / self.contrast) for deviation in deviations]
        contrast, least = by_shell(self.contrast, cube), known / 2
        weights = xp.ones_like(cube)
        if told is not None:
            weights, share = told.astype(np.float32), shell_sums(told) / n_voxels_of_shells(cube)
            least = np.maximum(known * share / 2, _LEAST_TOLD)
        weights = transformed(weights, known)
        results, last = [], None
        for transform, N in zip(transforms, noise, strict=True):
            gain = self.power / (self.power + np.maximum(N, 1e-9)[:, None])
            if N is not last:  # the halves share theirs
                even = gain / np.maximum(gain[:, 1:].max(axis=1, keepdims=True), 1e-6)
                even[:, 0] = 1.0
                scale = contrast / xp.maximum(_filter_by_shell(weights, even, cube), by_shell(least, cube))
                last = N
            results.append(_filter_by_shell(transform, gain, cube) * scale)
        return results


def _filter_by_shell(transform: Array, gain: NDArray[np.float64], cube: Array) -> Array:
    """The cube (n, n, n) float32 of a transform, filtered with gains (shells, distances), one row per shell.

    Each gain costs a transform, so that all shells share a few: gains change slowly from shell to shell.
    """
    return filtered(transform, *_few_factors(gain), cube)


def _contrast(
    cross: NDArray[np.float64], squares: list[NDArray[np.float64]], n_voxels: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Rms of what two halves have in common in each shell, but no less than they might have by chance."""
    # Friedel mates count as one measurement.
    by_chance = np.sqrt(squares[0] * squares[1] / np.maximum(n_voxels / 2, 1))
    likely = np.maximum(cross, np.maximum(_CHANCE * by_chance, 1e-6))
    return np.asarray(np.sqrt(np.minimum(likely, _LARGEST_CONTRAST**2)))


def _deviation(values: Array, exposure: Array) -> tuple[Array, Array]:
    """Deviations of a cube from its shell means (0 beyond the last shell), and these means; both float32."""
    xp = array_namespace(values)
    mean = shell_means(values, exposure)
    inside = shells_of(values) < n_shells_of(values) - 1
    return xp.where(inside, values - mean, np.float32(0)), mean


def _of_whole_shells(correlation: NDArray[np.float64]) -> NDArray[np.float64]:
    """Correlations by shell; the centre, a single voxel without one, gets that of its neighbour."""
    return np.append(correlation[1], correlation[1:])


def _few_factors(table: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A table (S, D) as the product of (S, k) and (k, D), within _GAIN_ERROR, with a small k.

    Each factor removes the row and the column of the largest remaining entry.  (A singular value
    decomposition would need one to three factors less, but waits for threads.)
    """
    rest = table.copy()
    columns: list[NDArray[np.float64]] = []
    rows: list[NDArray[np.float64]] = []
    while not rows or np.abs(rest).max() > _GAIN_ERROR:
        i, j = np.unravel_index(np.argmax(np.abs(rest)), rest.shape)
        columns.append(rest[:, j].copy())
        rows.append(rest[i] / (rest[i, j] or 1.0))
        rest -= columns[-1][:, None] * rows[-1]
    return np.array(columns).T, np.array(rows)


def _common_power(first: Array, second: Array) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The power that two transforms have in common at each distance, (distances,), with a mean of 1.

    Also returns how many numbers of the transform lie at each distance.
    """
    sums, number = common_sums(first, second)
    power = np.maximum(smoothed(sums / np.maximum(number, 1)), 0.0)
    mean = (power * number).sum() / number.sum()
    return (power / mean if mean > 0 else np.ones_like(power)), number
