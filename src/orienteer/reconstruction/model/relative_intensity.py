"""From the sums of merged frames to the intensity relative to its radial mean; agreement of two halves."""

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

# Photons of the radial mean that every voxel starts with, so that an empty voxel is the mean and not 0: once
# poses are known (about one photon for all voxels of a speckle), and while frames are spread widely.
_LEAST_PRIOR, _MOST_PRIOR = 0.02, 0.25
# Perplexity of frames with known poses: the grid spreads them over this many.
_FEWEST_POSES = 8.0
# Every voxel of an inverse start has at least this share of the mean of its shell.
_LEAST_START = 0.1


def prior_photons(perplexity: float) -> float:
    """Photons of the radial mean that every voxel starts with, for frames with this perplexity.

    Frames that are spread over many poses leave the same noise in many voxels, and the halves, which orient
    each other's frames, pass it on; a larger prior suppresses it.  Once poses are known, such a prior would
    take the contrast from faint shells.  Between the limits, it rises with the cube of the perplexity.

    >>> prior_photons(8), prior_photons(12), prior_photons(100)
    (0.02, 0.0675, 0.25)
    """
    spread = max(perplexity / _FEWEST_POSES, 1.0)
    return min(_LEAST_PRIOR * spread**3, _MOST_PRIOR)


def both_friedel(sums: Array) -> Array:
    """Means of sums (n, n, n, 2) at q and at -q, because W(-q) = W(q)."""
    if not is_on_gpu(sums):
        from orienteer.reconstruction.model import _relative_intensity_numba as twin

        return twin.both_friedel(sums)
    return array_namespace(sums).stack([friedel_symmetrise(sums[..., i]) for i in (0, 1)], axis=-1)


def solve(sums: Array, prior: float) -> Array:
    """Relative intensity (n, n, n) float32: merged photons over expected ones; near 1 where both are few.

    sums : (n, n, n, 2): merged photons, and photons that the radial mean would have given.
    prior : photons of the radial mean that every voxel starts with.
    """
    xp = array_namespace(sums)
    photons, expected = sums[..., 0], sums[..., 1]
    return ((photons + prior) / (expected + prior)).astype(xp.float32)


def corrected(model: Array, sums: Array, prior: float) -> Array:
    """A relative intensity (n, n, n) float32, corrected by the difference between frames and its slices.

    sums : (n, n, n, 2): photons merged minus those that the model's slices predict, and photons that the
        radial mean would have given.
    prior : photons of the radial mean that every voxel starts with.

    A plain mean of frames, put back by interpolation, is blurred, and its slices are blurred again.  Faint
    frames mostly return the model that oriented them, and would blur it further in every iteration.  The
    correction vanishes if the slices of the model match the frames.  If a background was subtracted, noise
    may make values negative; they are cut off only after the filter has removed the noise.
    """
    if not is_on_gpu(sums):
        from orienteer.reconstruction.model import _relative_intensity_numba as twin

        return twin.corrected(model, sums, prior)
    excess, expected = sums[..., 0], sums[..., 1]
    moved = model + (excess + prior * (1 - model)) / (expected + prior)
    return moved.astype(np.float32)


def is_half(values: Array) -> bool:
    """Whether an array holds only the planes x >= 0 (n // 2 + 1, n, n) of a cube that is its mirror image."""
    return bool(values.shape[0] != values.shape[-1])


def shells_of(values: Array) -> Array:
    """Shell of every voxel of a cube, or of half of one; all beyond the last whole shell are one more."""
    n = values.shape[-1]
    return _shells_of_cube(n, is_on_gpu(values))[n // 2 if is_half(values) else 0 :]


def shell_numbers(values: NDArray[Any]) -> NDArray[np.uint16]:
    """The shells as :func:`shells_of` has them, in uint16 for loops on the CPU."""
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
    """Number of shells of a cube, or of half of one, with the rest of the cube as one more."""
    return n_shells(values.shape[-1]) + 1


def n_voxels_of_shells(values: Array) -> NDArray[np.float64]:
    """Voxels in every shell of a whole cube, and in the rest, (shells + 1,); half a cube may be given."""
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

    Weighted by exposure; 0 for shells without any.
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
    """At every voxel of a cube (n, n, n), the mean of its shell, weighted by exposure; 1 without any."""
    total, of_shell = shell_moments([values], exposure).T
    mean = np.where(total > 0, of_shell / np.maximum(total, 1e-300), 1.0)
    return by_shell(mean, values)


def by_shell(curve: NDArray[Any], cube: Array) -> Array:
    """At every voxel of a cube, or of half of one, the value of a curve (shells + 1,) for its shell."""
    xp = array_namespace(cube)
    if not is_on_gpu(cube):
        from orienteer.reconstruction.model import _shell_moments_numba as twin

        return twin.spread(curve.astype(np.float32), shell_numbers(cube))
    return xp.asarray(curve.astype(np.float32))[shells_of(cube)]


def smoothed(curve: NDArray[np.float64]) -> NDArray[np.float64]:
    """A curve over shells, smoothed by the mean of three neighbours."""
    padded = np.pad(curve, 1, mode="edge")
    return np.asarray((padded[:-2] + padded[1:-1] + padded[2:]) / 3)


def resized(values: Array, n: int, zoom: float = 1.0) -> Array:
    """The cube, cut or padded to n voxels about the same centre; new voxels are 1, the radial mean.

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
    # The slice is 0 outside of the cube, so deviations from 1 are interpolated.
    found = slice_volume(values - np.float32(1), points, identity).reshape(n, n, n) + np.float32(1)
    # Make mirror images equal to the last bit again: then half of the cube is enough for its transforms.
    return (found + found[::-1, ::-1, ::-1]) / np.float32(2) if n % 2 else found


def random_start(n: int, seed: int, voxels_per_speckle: float, contrast: float = 0.3) -> NDArray[np.float32]:
    """A random relative intensity with speckles of the right size, with which blind reconstructions begin."""
    from scipy.ndimage import gaussian_filter

    noise = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,))).normal(size=(n, n, n))
    noise = gaussian_filter(noise, 0.4 * voxels_per_speckle)
    noise = noise + noise[::-1, ::-1, ::-1] if n % 2 else friedel_symmetrise(noise)
    return np.asarray(np.exp(contrast * noise / noise.std()), dtype=np.float32)


def inverse_start(model: Array) -> Array:
    """A relative intensity (n, n, n) float32 that is high where the given one is low on its shell.

    For a particle with the symmetry of a polyhedron, the innermost shells that are not round hold a single
    harmonic, of degree 6 (I) or 4 (O, T).  Pairs of pixels determine its strength, but not its sign.  A
    random start settles on either sign; of two starts that are inverse to each other, one is right.
    """
    xp = array_namespace(model)
    mean = shell_means(model, xp.ones_like(model))
    return xp.maximum(2 * mean - model, xp.float32(_LEAST_START) * mean)
