"""From merged sums to the intensity relative to its radial mean, and how far two halves agree about it."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.shells import n_shells, shell_index
from orienteer.compute.arrays import Array, array_namespace, is_on_gpu, to_device
from orienteer.compute.grouped_sums import Groups
from orienteer.slicing.trilinear import slice_volume
from orienteer.volume.friedel import friedel_symmetrise

# Photons of the radial mean that every voxel starts with, since an empty voxel is the mean, not nothing:
# about one for all voxels of a speckle where poses are known; and at most.
_LEAST_PRIOR, _MOST_PRIOR = 0.02, 0.25
# Poses that a frame is spread over at least where poses are known: a grid is not sharper.
_FEWEST_POSES = 8.0
# Of the mean of its shell every voxel of a start has at least this share.
_LEAST_START = 0.1


def prior_photons(perplexity: float) -> float:
    """Photons of the radial mean that every voxel starts with, when frames are spread over so many poses.

    Frames that are spread over many poses leave the same noise in many voxels, which the models of the halves
    hand to each other; a prior of some weight holds it down.  Where poses are known it would take their
    contrast from faint shells.  It rises with the cube of the spread: between lie few runs.

    >>> prior_photons(8), prior_photons(12), prior_photons(100)
    (0.02, 0.0675, 0.25)
    """
    spread = max(perplexity / _FEWEST_POSES, 1.0)
    return min(_LEAST_PRIOR * spread**3, _MOST_PRIOR)


def both_friedel(sums: Array) -> Array:
    """Means of sums (n, n, n, 2) and those of -q: W(-q) = W(q)."""
    if not is_on_gpu(sums):
        from orienteer.reconstruction.model import _relative_intensity_numba as twin

        return twin.both_friedel(sums)
    return array_namespace(sums).stack([friedel_symmetrise(sums[..., i]) for i in (0, 1)], axis=-1)


def solve(sums: Array, prior: float) -> Array:
    """Relative intensity (n, n, n) float32: merged over expected photons; 1 where both are few.

    sums : (n, n, n, 2): merged photons, and photons that the radial mean would have given.
    prior : photons of the mean that every voxel starts with.
    """
    xp = array_namespace(sums)
    photons, expected = sums[..., 0], sums[..., 1]
    return ((photons + prior) / (expected + prior)).astype(xp.float32)


def corrected(model: Array, sums: Array, prior: float) -> Array:
    """A relative intensity (n, n, n) float32, moved by what frames have more than its slices.

    sums : (n, n, n, 2): photons merged less those that the model's slices expect, and photons that the radial
        mean would have given.
    prior : photons of the mean that every voxel starts with.

    The mean of frames put back by interpolation is blurred, and slices of it once more.  Frames that hardly
    know their pose mostly give back the model that oriented them: they would blur it further in every
    iteration.  A correction vanishes when the slices of the model are right.  Where a background was taken
    off, noise may leave less than nothing; that is cut off only when it is known what is noise.
    """
    if not is_on_gpu(sums):
        from orienteer.reconstruction.model import _relative_intensity_numba as twin

        return twin.corrected(model, sums, prior)
    excess, expected = sums[..., 0], sums[..., 1]
    moved = model + (excess + prior * (1 - model)) / (expected + prior)
    return moved.astype(np.float32)


def is_half(values: Array) -> bool:
    """Whether an array has only the planes x >= 0 (n // 2 + 1, n, n) of a cube; the rest is their image."""
    return bool(values.shape[0] != values.shape[-1])


def shells_of(values: Array) -> Array:
    """Shell of every voxel of a cube, or of half of one; beyond the largest whole shell it is one more."""
    n = values.shape[-1]
    return _shells_of_cube(n, is_on_gpu(values))[n // 2 if is_half(values) else 0 :]


def shell_numbers(values: NDArray[Any]) -> NDArray[np.uint16]:
    """The same in few bytes, for loops on the CPU."""
    n = values.shape[-1]
    return _numbers_of_shells(n)[n // 2 if is_half(values) else 0 :]


@lru_cache(maxsize=2)
def _shells_of_cube(n: int, on_gpu: bool) -> Array:
    index = shell_index(n)
    return to_device(np.where(index < 0, n_shells(n), index), "cuda" if on_gpu else "cpu")


@lru_cache(maxsize=2)
def _numbers_of_shells(n: int) -> NDArray[np.uint16]:
    return np.asarray(_shells_of_cube(n, False), dtype=np.uint16)


@lru_cache(maxsize=2)
def _voxels_of_shells(n: int) -> Groups:
    """The voxels of a cube on the GPU, shell by shell."""
    return Groups(_shells_of_cube(n, True), n_shells(n) + 1)


def n_shells_of(values: Array) -> int:
    """Number of sums that :func:`shell_sums` gives for a cube, or for half of one."""
    return n_shells(values.shape[-1]) + 1


def n_voxels_of_shells(values: Array) -> NDArray[np.float64]:
    """Voxels in every shell of a cube, of which half may be given, and in the rest, (shells + 1,)."""
    return _n_voxels(values.shape[-1])


@lru_cache(maxsize=2)
def _n_voxels(n: int) -> NDArray[np.float64]:
    return np.bincount(_shells_of_cube(n, False).ravel()).astype(np.float64)


def shell_moments(cubes: Sequence[Array], weight: Array) -> NDArray[np.float64]:
    """Sums of w; of w, w a; or of w, w a, w b, w a b, w a a, w b b over every shell, and over the rest.

    cubes : none, one (a) or two (a, b) of (n, n, n); weight : (n, n, n).  On the CPU they may be halves of
        cubes, and the sums are those of the whole.  Returns (shells + 1, 1, 2 or 6).
    """
    xp, n_shells = array_namespace(weight), n_shells_of(weight)
    if not is_on_gpu(weight):
        from orienteer.reconstruction.model import _shell_moments_numba as twin

        return twin.shell_moments(shell_numbers(weight), n_shells, list(cubes), weight, is_half(weight))
    w, *values = (cube.astype(xp.float64) for cube in (weight, *cubes))
    terms = [w, *(w * a for a in values)]
    if len(values) == 2:
        (a, b), (_, wa, wb) = values, terms
        terms += [wa * b, wa * a, wb * b]
    return _voxels_of_shells(len(weight)).sums(*terms)


def shell_sums(values: Array) -> NDArray[np.float64]:
    """Sum of a cube (n, n, n) over its shells of one voxel, and over the rest, (shells + 1,)."""
    return shell_moments([], values)[:, 0]


def shell_covariances(first: Array, second: Array, exposure: Array) -> tuple[NDArray[np.float64], ...]:
    """Covariance of two cubes about their shell means, and the variance of each; each (shells + 1,).

    Weighted by exposure; 0 without any.
    """
    total, a, b, ab, aa, bb = shell_moments([first, second], exposure).T
    total = np.maximum(total, 1e-300)
    a, b = a / total, b / total
    return ab / total - a * b, np.maximum(aa / total - a * a, 0.0), np.maximum(bb / total - b * b, 0.0)


def half_correlation(first: Array, second: Array, exposure: Array) -> NDArray[np.float64]:
    """Correlation of two halves in every shell about its mean, weighted by exposure, (shells,)."""
    cross, square_a, square_b = shell_covariances(first, second, exposure)
    return np.asarray(cross / np.sqrt(np.maximum(square_a * square_b, 1e-300)))


def shell_means(values: Array, exposure: Array) -> Array:
    """The mean of its shell at every voxel of a cube (n, n, n), weighted by exposure; 1 without any."""
    total, of_shell = shell_moments([values], exposure).T
    mean = np.where(total > 0, of_shell / np.maximum(total, 1e-300), 1.0)
    return by_shell(mean, values)


def by_shell(curve: NDArray[Any], cube: Array) -> Array:
    """The value of a curve (shells + 1,) at every voxel of a cube, or of half of one, float32."""
    xp = array_namespace(cube)
    if not is_on_gpu(cube):
        from orienteer.reconstruction.model import _shell_moments_numba as twin

        return twin.spread(curve.astype(np.float32), shell_numbers(cube))
    return xp.asarray(curve.astype(np.float32))[shells_of(cube)]


def smoothed(curve: NDArray[np.float64]) -> NDArray[np.float64]:
    """Means of three neighbours of a curve over shells."""
    padded = np.pad(curve, 1, mode="edge")
    return np.asarray((padded[:-2] + padded[1:-1] + padded[2:]) / 3)


def resized(values: Array, n: int, zoom: float = 1.0) -> Array:
    """The cube in a cube of n voxels with the same centre; what is new is 1, the radial mean.

    zoom : edge of an old voxel over that of a new one.
    """
    xp = array_namespace(values)
    old = len(values)
    if zoom != 1:
        return _zoomed(values, n, zoom)
    out = xp.ones((n, n, n), dtype=xp.float32)
    shift = n // 2 - old // 2
    low, high = max(0, -shift), min(old, n - shift)
    inside = slice(low, high)
    target = slice(low + shift, high + shift)
    out[target, target, target] = values[inside, inside, inside]
    return out


def _zoomed(values: Array, n: int, zoom: float) -> Array:
    """As :func:`resized`, by trilinear interpolation about the radial mean."""
    xp = array_namespace(values)
    axis = xp.asarray(((np.arange(n) - n // 2) / zoom).astype(np.float32))
    points = xp.stack(xp.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    identity = xp.asarray(np.eye(3, dtype=np.float32)[None])
    # Points outside of the cube are 0.
    found = slice_volume(values - np.float32(1), points, identity).reshape(n, n, n) + np.float32(1)
    # Mirror images to the last bit, as they were: half of such a cube is enough for its transforms.
    return (found + found[::-1, ::-1, ::-1]) / np.float32(2) if n % 2 else found


def random_start(n: int, seed: int, voxels_per_speckle: float, contrast: float = 0.3) -> NDArray[np.float32]:
    """A random relative intensity with speckles of the right size: where blind reconstructions begin."""
    from scipy.ndimage import gaussian_filter

    noise = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,))).normal(size=(n, n, n))
    noise = gaussian_filter(noise, 0.4 * voxels_per_speckle)
    noise = noise + noise[::-1, ::-1, ::-1] if n % 2 else friedel_symmetrise(noise)
    return np.asarray(np.exp(contrast * noise / noise.std()), dtype=np.float32)


def inverse_start(model: Array) -> Array:
    """A relative intensity (n, n, n) float32 that is high where the given one is low on its shell.

    Of a particle with the symmetry of a polyhedron the innermost shells that are not round have one harmonic
    alone, of degree 6 (I) or 4 (O, T).  Pairs of pixels tell how strong it is, and not its sign.  A random
    start has either sign, and of two that are the inverse of each other one finds the particle.
    """
    xp = array_namespace(model)
    mean = shell_means(model, xp.ones_like(model))
    return xp.maximum(2 * mean - model, xp.float32(_LEAST_START) * mean)
