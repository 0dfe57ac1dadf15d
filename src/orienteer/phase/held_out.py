"""Voxels held out from phasing, and how well a density predicts them.

Voxels within a speckle are correlated, so they are held out in patches of the size of a speckle: the bright
voxels in the speckle pattern of a random body of the particle's size.  A pattern is even, so the mate of each
voxel is held out too.

There are two sets.  One chooses the volume of the support, and among the starts.  A density that was chosen
because it predicts some voxels well predicts them a little too well; so the other set, which has no part in
any choice, judges the result.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.distances import centred_axis, squared_distances
from orienteer.compare.symmetrising import symmetrised
from orienteer.compute.arrays import Array, array_namespace, to_numpy
from orienteer.orientation.point_group import PointGroup
from orienteer.phase.half_grid import frequencies, radii, transform_of, voxel_counts

if TYPE_CHECKING:
    from orienteer.phase.data import PhasingData

NO_SYMMETRY = PointGroup("C1")
# Voxels are held out only beyond this many speckles from the centre: the inner ones are all needed, because
# they determine the shape of the whole particle.
_SPARED_SPECKLES = 4.0
# This centre holds at most this share of the measured voxels.
_MOST_SPARED = 0.3
_SHELL_WIDTH = 3.0
# Moduli of a shell count as equal if their variance over their mean square is below this: that is rounding.
_NO_CONTRAST = 1e-12


def choose_held_out(
    measured: NDArray[np.bool_], speckle: float, share: float, seed: int, group: PointGroup = NO_SYMMETRY
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Measured voxels that choose and those that judge, both (n, n, n // 2 + 1) bool in the order of the FFT.

    measured : (n, n, n // 2 + 1) bool.
    speckle : width of a speckle in voxels, box over diameter.
    share : approximate share of the measured voxels to hold out; half of them judge.
    group : symmetry of the particle; equivalent voxels are held out together, as they have equal values.
    """
    n = len(measured)
    inner = min(_SPARED_SPECKLES * speckle, float(np.quantile(radii(n)[measured], _MOST_SPARED)))
    candidates = measured & (radii(n) > inner)
    inside = squared_distances(centred_axis(n)) <= (n / speckle / 2) ** 2
    n_out = min(round(share * measured.sum()), int(candidates.sum()) // 2) // 2
    sets = []
    for number in (1, 4):  # of the random draws; others belong to the starts
        body = np.random.default_rng([seed, number]).normal(size=(n, n, n)) * inside
        pattern = np.abs(transform_of(symmetrised(body, group)))
        out = np.zeros_like(measured)
        if n_out:
            out = candidates & (pattern >= np.partition(pattern[candidates], -n_out)[-n_out])
        candidates = candidates & ~out
        sets.append(out)
    return sets[0], sets[1]


def free_log_likelihood(density: Array, background: Array, data: "PhasingData") -> NDArray[np.float64]:
    """Mean log-likelihood (B,) of the voxels that choose, higher for a density that predicts them better.

    density : (B, n, n, n) that obeys all constraints; background : (B,) of the intensity.
    """
    return log_likelihood(density, background, data, data.choosing)


def log_likelihood(density: Array, background: Array, data: "PhasingData", use: Array) -> NDArray[np.float64]:
    """Mean log-likelihood of the voxels ``use`` (n, n, n // 2 + 1), (B,)."""
    return predict(density, background, data, use).mean


@dataclass(frozen=True, eq=False)
class Predicted:
    """How well each of B densities predicts each of V voxels of the half-grid.

    by_voxel : (B, V) float64, log-likelihoods.
    counts : (V,) float64, voxels of the whole grid that each stands for.
    speckle : (V,) int64, number of the speckle that each voxel lies in, approximately.
    n_copies : how often the symmetry of the particle repeats each speckle.
    """

    by_voxel: NDArray[np.float64]
    counts: NDArray[np.float64]
    speckle: NDArray[np.int64]
    n_copies: int = 1

    @property
    def mean(self) -> NDArray[np.float64]:
        """Log-likelihood per voxel, (B,)."""
        return np.asarray(self.by_voxel @ self.counts / max(self.counts.sum(), 1e-300))

    def by_speckle(self, densities: slice = slice(None)) -> "Predicted":
        """The same for some densities, with voxels averaged over each speckle: far fewer numbers."""
        counts = np.bincount(self.speckle, weights=self.counts).astype(np.float64)
        sums = [np.bincount(self.speckle, weights=one * self.counts) for one in self.by_voxel[densities]]
        return Predicted(np.stack(sums) / counts, counts, np.arange(len(counts)), self.n_copies)

    def below(self, best: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """How far each density is below the density ``best``, and the standard error of that, both (B,).

        All densities are judged by the same voxels, so whatever makes a voxel hard to predict for all of them
        cancels.  The remaining differences scatter from speckle to speckle.
        """
        less = self.by_voxel[best] - self.by_voxel
        mean = less @ self.counts / max(self.counts.sum(), 1e-300)
        apart = (less - mean[:, None]) * self.counts
        sums = np.stack([np.bincount(self.speckle, weights=one) for one in apart])
        # Copies of a speckle have the same error, which adds up instead of averaging out.
        error = np.sqrt(self.n_copies * (sums**2).sum(axis=1))
        return mean, error / max(self.counts.sum(), 1e-300)


def joined(parts: Sequence[Predicted], n_copies: int) -> Predicted:
    """Join results of different densities that were judged by the same voxels."""
    by_voxel = np.concatenate([part.by_voxel for part in parts])
    return Predicted(by_voxel, parts[0].counts, parts[0].speckle, n_copies)


def predict(density: Array, background: Array, data: "PhasingData", use: Array) -> Predicted:
    """Log-likelihoods of the voxels ``use`` (n, n, n // 2 + 1) under densities (B, n, n, n).

    The amplitude of a voxel is Gaussian around that of the density, after each shell was given the mean and
    the contrast that fit best: a density is judged by where it is bright and where dark.  The variance is the
    likeliest in each shell, but not below the error of the data.  So faint and bright shells count equally,
    and none counts as known better than it was measured.  Amplitudes are relative to their root mean square
    in the shell.
    """
    xp: Any = array_namespace(density)
    counts = to_numpy(xp.broadcast_to(xp.asarray(voxel_counts(data.n)), use.shape)[use])
    radius, speckle = _places(data.n, data.box_A / data.diameter_A, to_numpy(use))
    shell = np.floor(radius / _SHELL_WIDTH).astype(np.int64)
    n_shells = int(shell.max()) + 1 if shell.size else 0
    number = np.maximum(np.bincount(shell, weights=counts, minlength=n_shells), 1e-300)

    def means(values: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray(np.bincount(shell, weights=values * counts, minlength=n_shells) / number)

    amplitude, sigma = (to_numpy(part[use]).astype(np.float64) for part in (data.amplitudes, data.sigma))
    power = np.maximum(means(amplitude**2), 1e-300)
    # The error of an amplitude is that of the intensity over twice the amplitude, unless the latter is small.
    known = means(sigma**2 / np.maximum(4 * (amplitude**2 + sigma), 1e-300)) / power
    below = np.maximum(to_numpy(background), 0)
    result = np.empty((len(density), len(amplitude)))
    for start in range(len(density)):
        found = to_numpy(transform_of(density[start])[use])
        modulus = np.sqrt(found.real.astype(np.float64) ** 2 + found.imag**2 + below[start])
        wrong = (_in_contrast(modulus, amplitude, shell, means) - amplitude) ** 2
        variance = np.maximum(np.maximum(means(wrong) / power, known), 1e-12)
        result[start] = -(np.log(variance[shell]) + wrong / (power * variance)[shell]) / 2
    return Predicted(result, counts, speckle)


def _in_contrast(
    modulus: NDArray[np.float64],
    amplitude: NDArray[np.float64],
    shell: NDArray[np.int64],
    means: Callable[[NDArray[Any]], NDArray[np.float64]],
) -> NDArray[np.float64]:
    """Moduli (V,) scaled to the mean and the contrast that fit the amplitudes of each shell best.

    A reconstruction keeps only as much contrast of a noisy shell as it is sure of, so a correct density has
    more contrast than the data.
    """
    middle, level, square = means(modulus), means(amplitude), means(modulus**2)
    spread = square - middle**2
    has_contrast = spread > _NO_CONTRAST * square
    common = np.where(has_contrast, means(modulus * amplitude) - middle * level, 0)
    slope = np.maximum(common, 0) / np.where(has_contrast, spread, 1)
    return np.asarray(level[shell] + slope[shell] * (modulus - middle[shell]))


def _places(n: int, width: float, use: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Distance (V,) of the voxels from q = 0, and the number (V,) of their speckle (a cube of voxels)."""
    whole, half = frequencies(n)
    x, y, z = np.nonzero(use)
    places = np.stack([whole[x], whole[y], half[z]])
    cubes = np.floor((places + n / 2) / max(width, 1.0)).astype(np.int64)
    _, number = np.unique((cubes[0] * n + cubes[1]) * n + cubes[2], return_inverse=True)
    return np.sqrt((places**2).sum(axis=0)), np.asarray(number, np.int64)
