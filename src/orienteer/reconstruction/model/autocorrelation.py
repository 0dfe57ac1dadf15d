"""Wiener filter of a merged intensity: what two halves agree about, by shell and by distance in the particle.

The transform of an intensity is the autocorrelation of the particle, which ends at the particle's diameter;
the noise of voxels goes on to the end of the box.  How far the signal reaches need not be known: where the
autocorrelations of two halves do not agree, there is none.  So fine voxels, which interpolation needs, cost
no signal over noise.
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

# Largest error of a gain, when the gains of all shells are put together from a few that are common to them.
_GAIN_ERROR = 0.01
# Where frames meet a model, overshoots at dark places end here, or single photons there would decide.
LEAST_INTENSITY = 0.02
# Of a result; nothing is so dark that not one photon could come from there.
_DARKEST = 1e-3
# What a shell is known at least, so that what leaks in from its neighbours is not taken for its own.
_LEAST_KNOWN = 0.02
# A shell of which less than this share is told has nothing to give back.
_LEAST_TOLD = 1e-4
# Correlation of voxels as they are from which on it is known well.
_AGREE_AS_THEY_ARE = 0.5
# Standard errors of a shell's covariance below which it says nothing.
_CHANCE = 3.0
# Fully developed speckles deviate by as much as their mean, those of a symmetric particle by 2^0.5 of it.
_LARGEST_CONTRAST = 2**0.5


class WienerFilter:
    """Keeps S / (S + N) of every deviation from the shell means.

    S, the power of the signal by distance in the autocorrelation, and N, the noise over the signal of each
    shell of the intensity, both come from two halves.

    order : operations of the point group that the cubes have been averaged over.
    contrast : (shells,) rms deviation of the signal from the mean of its shell.
    power : (distances,) of the signal by distance in voxels of the autocorrelation, its mean over the box 1.
    noise : (shells,) noise over signal in a voxel of one half.
    correlation : (shells,) of the halves about the shell means, when distances without signal are left out.
        Filtered halves also agree about what leaks into a shell from those around it; so it is not more than
        the halves as they came and the filter's gain in signal over noise allow.
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
            # Shells of little contrast must not drown in those beside them, nor known ones in noise.
            scale = 1 / self.contrast / (1 + self.noise)
            self.power, number = _common_power(*(transformed(half, scale) for half in halves))
            a, b = self._filter(halves, [ones, ones])
            agreement = _of_whole_shells(half_correlation(a, b, exposure))
            # The filter has kept so much more of the signal than of the noise.
            gain = self.power / (self.power + 1)
            kept = (number * self.power * gain**2).sum() / max((number * gain**2).sum(), 1e-300)
            agreed = np.clip(smoothed(agreement), 1e-4, 1.0)
            # Where voxels agree as they are, what filtered ones disagree about has leaked in.
            self.noise = np.minimum((1 - agreed) / agreed * kept, most_noise)
        came = np.clip(smoothed(smoothed(as_they_came)), -0.99, 1.0)
        # Less signal than noise by chance is none, and a filter makes it no less.
        gained = np.where(came > 0, kept * came / (kept * came.clip(0) + 1 - came), came)
        self.correlation = np.minimum(agreement, gained)

    def __call__(
        self, values: Array, exposure: Array, *, is_half: bool = True, told: Array | None = None
    ) -> Array:
        """The filtered cube (n, n, n) float32.

        is_half : whether the values have the noise of one half, and not that of both together.  Frames meet
            halves only; in the whole, dark places may be dark.
        told : (n, n, n), share of the deviation of each voxel that is left where a prior holds it to the mean
            of its shell; None: all.  Over the voxels of a speckle it is given back.
        """
        least = LEAST_INTENSITY if is_half else _DARKEST
        return self.filtered([(values, exposure, is_half)], least, told)[0]

    def filtered(
        self,
        cubes: list[tuple[Array, Array, bool]],
        least: float = LEAST_INTENSITY,
        told: Array | None = None,
    ) -> list[Array]:
        """Several filtered cubes: values, exposure and is_half of each, in less time than one by one.

        least : no value is lower; told : as above, of all cubes.
        """
        n, told_too = len(cubes), [] if told is None else [told]
        alike = halved([cube for values, exposure, _ in cubes for cube in (values, exposure)] + told_too)
        values, exposures = alike[: 2 * n : 2], alike[1 : 2 * n : 2]
        parts = [_deviation(*pair) for pair in zip(values, exposures, strict=True)]
        noise = [self.noise if is_half else self.noise / 2 for _, _, is_half in cubes]
        kept = self._filter([deviation for deviation, _ in parts], noise, alike[-1] if told_too else None)
        xp = array_namespace(kept[0])
        # A shell that no frame shows keeps its mean, whatever leaks in from those around it.
        shown = [by_shell(shell_sums(exposure) > 0, kept[0]) for exposure in exposures]
        return [
            whole(xp.maximum(mean + deviation * seen, np.float32(least)))
            for (_, mean), deviation, seen in zip(parts, kept, shown, strict=True)
        ]

    def _filter(
        self, deviations: list[Array], noise: list[NDArray[np.float64]], told: Array | None = None
    ) -> list[Array]:
        """Deviations of which S / (S + noise) is kept, shells weighed by what is known of them.

        What is filtered is divided by its weights, filtered alike.  Where a prior has left but a share of
        each deviation, these shares are weights, too: the sum of photons over that of exposures.
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
    """The cube (n, n, n) float32 of a transform, with a gain (shells, distances) for every shell.

    A filter costs a transform, so shells share a few: the gains change slowly from shell to shell.
    """
    return filtered(transform, *_few_factors(gain), cube)


def _contrast(
    cross: NDArray[np.float64], squares: list[NDArray[np.float64]], n_voxels: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Rms of what two halves have in common in each shell, or what they might have by chance if more."""
    # Friedel mates are one measurement.
    by_chance = np.sqrt(squares[0] * squares[1] / np.maximum(n_voxels / 2, 1))
    likely = np.maximum(cross, np.maximum(_CHANCE * by_chance, 1e-6))
    return np.asarray(np.sqrt(np.minimum(likely, _LARGEST_CONTRAST**2)))


def _deviation(values: Array, exposure: Array) -> tuple[Array, Array]:
    """Deviations of a cube from its shell means, 0 beyond the last shell, and these means; both float32."""
    xp = array_namespace(values)
    mean = shell_means(values, exposure)
    inside = shells_of(values) < n_shells_of(values) - 1
    return xp.where(inside, values - mean, np.float32(0)), mean


def _of_whole_shells(correlation: NDArray[np.float64]) -> NDArray[np.float64]:
    """Correlations by shell; the centre, a single voxel that has none, is as its neighbour."""
    return np.append(correlation[1], correlation[1:])


def _few_factors(table: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A table (S, D) as the product of (S, k) and (k, D), to _GAIN_ERROR, with few k.

    Each factor takes away the row and the column of the largest rest.  (A singular value decomposition would
    need one to three factors less, and waits for threads.)
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
    """What two transforms have in common by distance, (distances,), its mean over the box 1.

    Returns also how many numbers of the transform lie at each distance.
    """
    sums, number = common_sums(first, second)
    power = np.maximum(smoothed(sums / np.maximum(number, 1)), 0.0)
    mean = (power * number).sum() / number.sum()
    return (power / mean if mean > 0 else np.ones_like(power)), number
