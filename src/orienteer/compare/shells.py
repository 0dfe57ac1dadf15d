"""Spherical shells of a cube, and how well two volumes agree on each.

Intensities are positive and fall steeply with q, so any two of them correlate almost perfectly as they are.
Objects differ in how the speckles vary around the sphere.  So the radial profile is removed first, and every
shell is judged separately.

Shell s contains the voxels whose distance from the centre voxel n // 2 is nearest to s widths.  Only whole
shells count, those that lie entirely inside the cube.  NaN means "never measured" and is left out everywhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.distances import centred_axis, distances
from orienteer.compute.arrays import Array, array_namespace, is_on_gpu, to_device
from orienteer.compute.grouped_sums import Groups
from orienteer.errors import OrienteerError

OUTSIDE = -1


@dataclass(frozen=True, eq=False)
class ShellCorrelation:
    """Agreement of two volumes, shell by shell.

    radius : (S,) float64, middle of each shell in voxels.
    correlation : (S,) float64, Pearson correlation within the shell; 0 if only the second volume is constant
        there; NaN if the first is, or if the shell has fewer than two common voxels.
    n_voxels : (S,) int64, voxels measured in both volumes.
    """

    radius: NDArray[np.float64]
    correlation: NDArray[np.float64]
    n_voxels: NDArray[np.int64]

    def mean(self, shells: Sequence[int] | NDArray[np.int64] | NDArray[np.bool_] | None = None) -> float:
        """Mean correlation over the shells, each counted once.

        Shells without common voxels count as 0.  Those on which the first volume is constant are left out,
        such as the innermost ones of a virus; if no others are left, the mean is 0.

        shells : their numbers, or (S,) bool; by default all that have a correlation, except the centre.
        """
        if shells is None:
            shells = np.isfinite(self.correlation) & (np.arange(len(self.radius)) > 0)
        chosen, n_voxels = self.correlation[np.asarray(shells)], self.n_voxels[np.asarray(shells)]
        if not chosen.size:
            return float("nan")
        said = np.nan_to_num(chosen[np.isfinite(chosen) | (n_voxels < 2)])
        return float(said.mean()) if said.size else 0.0


def n_shells(n: int, width: float = 1.0) -> int:
    """Number of whole shells in a cube of n voxels along an edge, the centre included.

    >>> n_shells(5), n_shells(6), n_shells(7)
    (3, 3, 4)
    """
    # The nearest voxel outside the cube is (n - 1) // 2 + 1 from the centre; its shell is not whole.
    return int(((n - 1) // 2 + 1) / width + 0.5)


def shell_index(n: int, width: float = 1.0) -> NDArray[np.int32]:
    """Shell of every voxel of a cube, (n, n, n) int32; -1 beyond the last whole shell.

    width : thickness of a shell in voxels, at least 1.

    >>> shell_index(4)[2, 2]
    array([-1,  1,  0,  1], dtype=int32)
    """
    if n < 1 or not 1 <= width < np.inf:
        raise OrienteerError(f"shells are {width:g} voxels wide in a cube of {n}; both must be at least 1.")
    return _shell_index(int(n), float(width))


@lru_cache(maxsize=4)
def _shell_index(n: int, width: float) -> NDArray[np.int32]:
    index = np.floor(distances(centred_axis(n)) / width + 0.5).astype(np.int32)
    index[index >= n_shells(n, width)] = OUTSIDE
    index.setflags(write=False)
    return index


def radial_mean(values: Array, width: float = 1.0) -> NDArray[np.float64]:
    """Mean of every shell of a cube (n, n, n), (S,) float64; NaN where nothing was measured."""
    total, count = _shell_sums(values, width)
    mean = np.full(len(total), np.nan)
    mean[count > 0] = total[count > 0] / count[count > 0]
    return mean


def radial_variance(values: Array, width: float = 1.0) -> NDArray[np.float64]:
    """Variance of the values of every shell around the radial profile, (S,) float64."""
    deviation = without_profile(values, width)
    return radial_mean(deviation * deviation, width)


def without_profile(values: Array, width: float = 1.0) -> Array:
    """The cube minus its radial profile, (n, n, n) float64; NaN beyond the last whole shell.

    On each shell the profile is the best-fitting parabola in the radius.  The mean of the shell would not
    suffice: a steep intensity falls considerably within one shell, in the same way for every particle and
    orientation.
    """
    xp = array_namespace(values)
    index = _index_beside(values, width)
    used = (index != OUTSIDE) & ~xp.isnan(values)
    shell = index[used]
    depth = _depth(values.shape[0], float(width), is_on_gpu(values))[used]
    own = xp.astype(values[used], xp.float64)

    square = depth * depth
    powers = [xp.ones_like(depth), depth, square, square * depth, square * square]
    sums = Groups(shell, n_shells(values.shape[0], width)).sums(*powers, *(own * x for x in powers[:3]))
    moments, sides = sums[:, :5], sums[:, 5:]
    normal = moments[:, np.add.outer(np.arange(3), np.arange(3))]  # (S, 3, 3)
    # Inner shells have only one or two different radii; the pseudo-inverse handles such singular equations.
    fit = np.einsum("sij,sj->si", np.linalg.pinv(normal, rcond=1e-9, hermitian=True), sides)
    level, slope, bend = (xp.asarray(np.ascontiguousarray(term))[shell] for term in fit.T)
    result = xp.full(values.shape, xp.nan, dtype=xp.float64)
    result[used] = own - (level + depth * (slope + depth * bend))
    return result


@lru_cache(maxsize=4)
def _depth(n: int, width: float, on_gpu: bool) -> Array:
    """Distance of every voxel from the middle of its shell, in widths from -0.5 to 0.5, (n, n, n)."""
    radius = distances(centred_axis(n)) / width
    depth = radius - np.floor(radius + 0.5)
    depth.setflags(write=False)
    return to_device(depth, "cuda") if on_gpu else depth


def shell_correlation(a: Array, b: Array, width: float = 1.0) -> ShellCorrelation:
    """Pearson correlation of two cubes on each shell, after removal of the radial profile.

    a, b : (n, n, n) real, both on the CPU or both on the GPU; a is the reference, which tells the shells that
        can agree.
    width : thickness of the shells in voxels, at least 1.
    """
    xp = array_namespace(a, b)
    if a.shape != b.shape:
        raise OrienteerError(f"volumes of {a.shape} and {b.shape} voxels cannot be compared.")
    missing = xp.isnan(a) | xp.isnan(b)
    first, second = (without_profile(xp.where(missing, xp.nan, x), width) for x in (a, b))
    products, n_voxels = _shell_sums(first * second, width)
    power = np.stack([_shell_sums(x * x, width)[0] for x in (first, second)])
    # Rounding leaves some power in a constant shell: float32 values are accurate to 6e-8, a share of 4e-15.
    level = np.stack([_shell_sums(xp.astype(x, xp.float64) ** 2, width)[0] for x in (a, b)])
    varies = (n_voxels > 1) & (power > 1e-13 * level)
    correlation = np.where(varies[0], 0.0, np.nan)
    both = varies.all(axis=0)
    correlation[both] = products[both] / np.sqrt(power[:, both].prod(axis=0))
    return ShellCorrelation(width * np.arange(len(products), dtype=np.float64), correlation, n_voxels)


def _index_beside(values: Array, width: float) -> Array:
    """Shells of the voxels, on the device of the values."""
    if values.ndim != 3 or len(set(values.shape)) != 1:
        raise OrienteerError(f"shells need a cube (n, n, n), not an array of shape {tuple(values.shape)}.")
    return _index_on(values.shape[0], float(width), is_on_gpu(values))


@lru_cache(maxsize=4)
def _index_on(n: int, width: float, on_gpu: bool) -> Array:
    """The index of shells, cached on the device of the values."""
    return to_device(shell_index(n, width), "cuda") if on_gpu else shell_index(n, width)


def _shell_sums(values: Array, width: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Sum and number of the measured voxels of every shell, both (S,)."""
    xp = array_namespace(values)
    shells, index = n_shells(values.shape[0], width), _index_beside(values, width)
    used = (index != OUTSIDE) & ~xp.isnan(values)
    groups = Groups(index[used], shells)
    return groups.sums(xp.astype(values[used], xp.float64))[:, 0], groups.n_members
