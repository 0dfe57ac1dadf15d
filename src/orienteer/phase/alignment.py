"""Align starts in place, hand and sign, so that they can be compared and averaged.

Amplitudes do not determine the place of the particle, its hand (rho(-r) has the same amplitudes) or its sign,
and each start ends with random ones.  In Fourier space all three can be changed exactly, without blurring: a
shift by any fraction of a voxel is a phase ramp, and the other hand is the complex conjugate.

Agreement is measured by the phases.  The bright shells near the centre must not decide alone, so every
measured shell is given the same power first: the correlation of such *levelled* transforms is the mean over
shells of the Fourier shell correlation.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.shells import OUTSIDE
from orienteer.compute.arrays import Array, array_namespace, to_numpy
from orienteer.phase.half_grid import (
    ShellSums,
    density_of,
    edge_of,
    frequencies,
    half_grid_shells,
    voxel_counts,
)

# Voxels of the whole grid that are processed at once: several copies of them must fit into memory.
VOXELS_AT_A_TIME = 2**25
# From the best whole voxel, Newton's steps converge quadratically: three are accurate to 1e-6 voxels.
NEWTON_STEPS = 5
LONGEST_STEP = 0.5


@dataclass(frozen=True, eq=False)
class StartAlignment:
    """The operations that align each start with a reference, in this order: hand, sign, shift.

    hand : (B,) int64, 1, or -1 for the other hand.
    sign : (B,) int64, 1 or -1.
    shift : (B, 3) float64, in voxels along x, y, z.
    agreement : (B,) float64, mean over shells of the Fourier shell correlation with the reference, aligned.
    other_hand : (B,) float64, the best agreement in the hand that was not chosen, to the nearest voxel.
    """

    hand: NDArray[np.int64]
    sign: NDArray[np.int64]
    shift: NDArray[np.float64]
    agreement: NDArray[np.float64]
    other_hand: NDArray[np.float64]


def level_shells(transforms: Array, measured: Array) -> Array:
    """Transforms with the same power in every measured shell, 1 in total; zero where nothing was measured.

    transforms : (B, n, n, n // 2 + 1) complex.
    measured : (n, n, n // 2 + 1) bool.
    """
    xp: Any = array_namespace(transforms)
    index = xp.asarray(half_grid_shells(edge_of(transforms)))
    use = measured & (index != OUTSIDE)
    levelled = xp.empty(transforms.shape, dtype=xp.complex64)
    sums_of = ShellSums(use)
    for start, transform in enumerate(transforms):
        power = sums_of(transform.real**2 + transform.imag**2)
        lit = power > 0
        factor = np.where(lit, 1 / np.sqrt(np.where(lit, power, 1) * max(int(lit.sum()), 1)), 0)
        levelled[start] = transform * xp.where(use, xp.asarray(factor)[index], 0)
    return levelled


def align_starts(reference: Array, starts: Array) -> StartAlignment:
    """Find the hand, sign and shift that bring each start to the reference.

    reference : (n, n, n // 2 + 1) complex, levelled.
    starts : (B, n, n, n // 2 + 1) complex, levelled.
    """
    n_voxels = edge_of(reference) ** 3
    at_a_time = max(1, VOXELS_AT_A_TIME // n_voxels)
    parts = [_align(reference, starts[i : i + at_a_time]) for i in range(0, len(starts), at_a_time)]
    columns = zip(*parts, strict=True)
    return StartAlignment(*(np.concatenate(column) for column in columns))


def agreement_with_other_hand(transform: Array) -> float:
    """The best agreement of a density with its own inverse; 1 for one with a centre of symmetry.

    transform : (n, n, n // 2 + 1) complex, levelled.
    """
    xp: Any = array_namespace(transform)
    n = edge_of(transform)
    # The other hand is the conjugate, so the correlation of both is the inverse transform of the square.
    place = int(xp.argmax(density_of(transform * transform)))
    at = (np.array(np.unravel_index(place, (n, n, n))) + n // 2) % n - n // 2
    return float(_climb(xp.conj(transform * transform)[None], at[None])[1][0])


def apply_alignment(transforms: Array, alignment: StartAlignment) -> Array:
    """The transforms (B, n, n, n // 2 + 1) of the densities, brought to their hand, sign and place."""
    xp: Any = array_namespace(transforms)
    aligned = xp.empty_like(transforms)
    for start, transform in enumerate(transforms):
        handed = transform if alignment.hand[start] > 0 else xp.conj(transform)
        aligned[start] = shifted(handed, alignment.shift[start]) * int(alignment.sign[start])
    return aligned


def shifted(transform: Array, shift: Any) -> Array:
    """The transform (n, n, n // 2 + 1) of a density shifted by ``shift`` (3,) voxels, fractions included.

    At the highest frequency of an even grid a real density can only have the cosine, so only that is kept.
    """
    xp: Any = array_namespace(transform)
    n = edge_of(transform)
    whole, half = frequencies(n)
    x, y, z = (
        xp.asarray(_ramp(axis, float(by), n), dtype=transform.dtype)
        for axis, by in zip((whole, whole, half), np.asarray(shift), strict=True)
    )
    return transform * x[:, None, None] * y[:, None] * z


def _ramp(frequency: NDArray[np.float64], shift: float, n: int) -> NDArray[np.complex128]:
    ramp = np.exp(-2j * np.pi / n * frequency * shift)
    return np.asarray(np.where(2 * np.abs(frequency) == n, ramp.real, ramp))


def _align(reference: Array, starts: Array) -> tuple[NDArray[Any], ...]:
    """Hand, sign, shift, agreement, and agreement of the other hand, for some starts."""
    xp: Any = array_namespace(starts)
    n = edge_of(reference)
    places, peaks = [], []
    for handed in (starts, xp.conj(starts)):
        # The correlation with the start moved by s is the inverse transform of R conj(S) at s.
        correlation = density_of(reference * xp.conj(handed)).reshape(len(starts), -1)
        place = xp.argmax(xp.abs(correlation), axis=1)
        places.append(to_numpy(place))
        peaks.append(to_numpy(xp.take_along_axis(correlation, place[:, None], axis=1)[:, 0]))
    height = np.stack(peaks) * float(n) ** 3  # (2, B)
    taken = np.argmax(np.abs(height), axis=0)
    of_each = np.arange(len(starts))
    hand = 1 - 2 * taken
    sign = np.where(height[taken, of_each] < 0, -1, 1)
    whole_voxels = np.stack(np.unravel_index(np.stack(places)[taken, of_each], (n, n, n)), axis=1)
    cross = xp.where(xp.asarray(hand > 0)[:, None, None, None], starts, xp.conj(starts))
    cross = cross * xp.conj(reference) * xp.asarray(sign.astype(np.float32))[:, None, None, None]
    shift, agreement = _climb(cross, (whole_voxels + n // 2) % n - n // 2)
    other_hand = np.abs(height[1 - taken, of_each]).astype(np.float64)
    return hand, sign, shift, agreement, other_hand


def _climb(cross: Array, shift: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The shifts (B, 3) of highest correlation near the given ones, by Newton's method, and the correlations.

    cross : (B, n, n, n // 2 + 1) complex, conj(R) S.
    """
    n = edge_of(cross)
    shift = shift.astype(np.float64)
    for _ in range(NEWTON_STEPS):
        _, slope, bend = _derivatives(cross, shift, n)
        # Away from the maximum the curvature may be positive: use its modulus, so that steps go uphill.
        values, vectors = np.linalg.eigh(bend)
        values = -np.maximum(np.abs(values), 1e-12)
        along = np.einsum("bij,bi->bj", vectors, slope) / values
        step = -np.einsum("bij,bj->bi", vectors, along)
        length = np.maximum(np.abs(step).max(axis=1, keepdims=True), 1e-300)
        shift = shift + step * np.minimum(1, LONGEST_STEP / length)
    return shift, _derivatives(cross, shift, n)[0]


def _derivatives(
    cross: Array, shift: NDArray[np.float64], n: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Correlation (B,) at the shifts (B, 3), its gradient (B, 3) and second derivatives (B, 3, 3).

    Each is a sum over q of cross exp(-2 pi i q s / n) times powers of q, computed axis by axis.
    """
    xp: Any = array_namespace(cross)
    whole, half = frequencies(n)
    x, y, z = (
        xp.asarray(_powers(axis, shift[:, a], n)) for a, axis in enumerate((whole, whole, half))
    )  # (B, n, 3) each
    z = z * xp.asarray(voxel_counts(n))[:, None]
    flat = cross.reshape(len(cross), n * n, -1)
    sums = (flat @ z.astype(cross.dtype)).reshape(len(cross), n, n, 3).astype(xp.complex128)
    moments = to_numpy(xp.einsum("bxyk,byj,bxi->bijk", sums, y, x))  # (B, 3, 3, 3): powers of q_x, q_y, q_z
    value = moments[:, 0, 0, 0].real
    slope = np.stack([moments[:, 1, 0, 0], moments[:, 0, 1, 0], moments[:, 0, 0, 1]], axis=1).real
    xx, yy, zz = moments[:, 2, 0, 0].real, moments[:, 0, 2, 0].real, moments[:, 0, 0, 2].real
    xy, xz, yz = moments[:, 1, 1, 0].real, moments[:, 1, 0, 1].real, moments[:, 0, 1, 1].real
    bend = np.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], axis=1).reshape(-1, 3, 3)
    return value, slope, bend


def _powers(frequency: NDArray[np.float64], shift: NDArray[np.float64], n: int) -> NDArray[np.complex128]:
    """exp(-2 pi i q s / n) and its first two derivatives by s, (B, n, 3)."""
    rate = -2j * np.pi / n * frequency
    ramp = np.exp(rate * shift[:, None])
    return np.stack([ramp, ramp * rate, ramp * rate**2], axis=-1)
