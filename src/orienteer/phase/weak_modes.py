"""Modes of the density that the data hardly constrain, because most of their power was not measured.

A density inside a support is the sum of modes, the eigenvectors of "keep what lies in the support, then what
lies in unmeasured voxels of Fourier space, then in the support again".  The eigenvalue of a mode is the share
of its power in unmeasured voxels.  At 0 the mode was measured completely; near 1 the density may contain any
amount of it and still fit the data.  Modes near 1 are smooth, because the missing voxels lie around q = 0
(Thibault and others, Acta Cryst. A62, 248, 2006).

Unmeasured voxels are few, and each is one wave: modes are sums of these waves, cut to the support.  The inner
product of two waves inside the support is the transform of the support at their difference, so one transform
gives a small matrix with the same eigenvalues.

Only voxels inside the edge of the data count as unmeasured.  Nobody expects the data to contain what lies
beyond their resolution.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, array_namespace, to_numpy
from orienteer.phase.half_grid import (
    density_of,
    edge_of,
    frequencies,
    rounded_radii,
    transform_of,
    voxel_counts,
)

# A mode is weak if more than this share of its power was not measured.  At 0.9 its error is three times that
# of a mode that was measured completely.
WEAK = 0.9
# Most waves: their matrix is solved in a second.  Of a larger hole only the innermost waves are used.
MOST_WAVES = 1500
# Modes with less than this share of their power unmeasured are not reported.
_LEAST = 1e-3
# A shell with at least this share measured lies within the edge of the data.
INSIDE = 0.5


@dataclass(frozen=True, eq=False)
class WeakModes:
    """What the data leave open.

    eigenvalues : (K,) float64, falling; share of the power of each mode that was not measured.
    share : share of the density's power (sum of squares) that lies in the weak modes, 0 to 1.
    n_unmeasured : voxels of the whole grid, inside the edge of the data, that were not measured.
    is_complete : whether all unmeasured voxels were considered; if not, there may be more weak modes.
    modes : (K, n, n, n) float32 of unit power; None if they were not kept.
    """

    eigenvalues: NDArray[np.float64]
    share: float
    n_unmeasured: int
    is_complete: bool = True
    modes: Array | None = None

    @property
    def number(self) -> int:
        """Number of weak modes."""
        return int((self.eigenvalues > WEAK).sum())

    def words(self) -> str:
        """The same in a sentence."""
        if self.number == 0 and not self.is_complete:
            return "How much the unmeasured voxels hide could not be determined."
        if self.number == 0:
            return "The data determine every part of the density."
        least = "" if self.is_complete else "at least "
        what = "one smooth mode" if self.number == 1 else f"{self.number} smooth modes"
        return (
            f"The data hardly constrain {least}{what} of the density inside its support, "
            f"which {'holds' if self.number == 1 else 'hold'} {self.share:.0%} of its power."
        )


def weak_modes(density: Array, support: Array, measured: Array, keep: bool = False) -> WeakModes:
    """Find the modes inside a support that unmeasured voxels hide, and their share of the density.

    density : (n, n, n) real.
    support : (n, n, n) bool.
    measured : (n, n, n // 2 + 1) bool, in the order of the FFT.
    keep : whether the modes themselves are returned.
    """
    xp: Any = array_namespace(density)
    n = edge_of(measured)
    hole = to_numpy(hole_of(measured))
    n_unmeasured = int(np.broadcast_to(voxel_counts(n), hole.shape)[hole].sum())
    if n_unmeasured == 0 or not bool(support.any()):
        return WeakModes(np.zeros(0), 0.0, n_unmeasured)
    waves = _Waves.of(hole)
    common = _common(to_numpy(transform_of(support.astype(xp.float64))), waves, n)
    values, vectors = np.linalg.eigh(common)
    values, vectors = values[::-1], vectors[:, ::-1]
    values, vectors = values[values > _LEAST], vectors[:, values > _LEAST]
    vectors = vectors / np.sqrt(values)
    chosen = values > WEAK
    inside = density.astype(xp.float64) * support
    along = waves.products(to_numpy(transform_of(inside)), n) @ vectors[:, chosen]
    power = float((density.astype(xp.float64) ** 2).sum())
    share = float((along**2).sum() / power) if power > 0 else 0.0
    modes = None
    if keep:
        modes = xp.stack([support * density_of(xp.asarray(waves.sum(one, n))) for one in vectors.T])
        modes = modes.astype(xp.float32)
    return WeakModes(np.clip(values, 0, 1), share, n_unmeasured, len(waves) == n_unmeasured, modes)


def hole_of(measured: Array) -> Array:
    """Unmeasured voxels inside the edge of the data, (n, n, n // 2 + 1) bool.

    The edge is the outermost shell of which at least half was measured; its own missing voxels do not count.
    """
    xp: Any = array_namespace(measured)
    n = edge_of(measured)
    shell = rounded_radii(n)
    known = np.bincount(shell.ravel(), weights=to_numpy(measured).ravel())
    full = np.flatnonzero(known >= INSIDE * np.bincount(shell.ravel()))
    edge = int(full[-1]) if len(full) else -1
    return ~measured & xp.asarray(shell < edge)


@dataclass(frozen=True, eq=False)
class _Waves:
    """Real waves of unit power over the box: a cosine for each pair of voxels q and -q, and a sine.

    places : (P, 3) int64, whole periods along x, y, z; one voxel of each pair.
    has_sine : (P,) bool; false for a voxel that is its own mate, such as q = 0.
    """

    places: NDArray[np.int64]
    has_sine: NDArray[np.bool_]

    @classmethod
    def of(cls, hole: NDArray[np.bool_]) -> "_Waves":
        """The waves of a hole (n, n, n // 2 + 1), the innermost first, at most MOST_WAVES."""
        n = len(hole)
        whole, half = frequencies(n)
        x, y, z = np.nonzero(hole)
        places = np.stack([whole[x], whole[y], half[z]], axis=1).astype(np.int64)
        own, mate = _number(places, n), _number(-places, n)
        # The half-grid contains both voxels of a pair only in planes that are not halved.
        both = np.isin(mate, own)
        places, has_sine = places[~both | (own <= mate)], (own != mate)[~both | (own <= mate)]
        order = np.argsort((places**2).sum(axis=1), kind="stable")
        order = order[np.cumsum(1 + has_sine[order]) <= MOST_WAVES]
        return cls(places[order], has_sine[order])

    def __len__(self) -> int:
        return len(self.places) + int(self.has_sine.sum())

    @property
    def strength(self) -> NDArray[np.float64]:
        """Amplitude (P,) of the waves, relative to that of a constant one."""
        return np.where(self.has_sine, 2**0.5, 1.0)

    def products(self, transform: NDArray[np.complex128], n: int) -> NDArray[np.float64]:
        """Inner products (W,) of all cosines, then all sines, with the density of a transform."""
        found = _at(transform, self.places, n) * self.strength / n**1.5
        return np.concatenate([found.real, -found.imag[self.has_sine]])

    def sum(self, amounts: NDArray[np.float64], n: int) -> NDArray[np.complex128]:
        """The transform (n, n, n // 2 + 1) of a sum of waves with these amounts (W,)."""
        number = len(self.places)
        values = amounts[:number].astype(np.complex128)
        values[self.has_sine] -= 1j * amounts[number:]
        values *= n**1.5 / self.strength
        result = np.zeros((n, n, n // 2 + 1), np.complex128)
        for places, own in ((self.places, values), (-self.places, values.conj())):
            x, y, z = (places % n).T
            kept = z <= n // 2
            result[x[kept], y[kept], z[kept]] = own[kept]
        return result


def _common(transform: NDArray[np.complex128], waves: _Waves, n: int) -> NDArray[np.float64]:
    """Inner products (W, W) of all pairs of waves inside the support, from the support's transform."""
    a, b = waves.places[:, None], waves.places[None]
    both = waves.strength[:, None] * waves.strength / (2 * n**3)
    apart, together = (_at(transform, places, n) * both for places in (a - b, a + b))
    sine = waves.has_sine
    cosines, sines = apart.real + together.real, apart.real - together.real
    mixed = (apart.imag - together.imag)[:, sine]
    return np.block([[cosines, mixed], [mixed.T, sines[sine][:, sine]]])


def _number(places: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """The number of each voxel (P,) of the whole grid."""
    x, y, z = (places % n).T
    return np.asarray((x * n + y) * n + z)


def _at(transform: NDArray[np.complex128], places: NDArray[np.int64], n: int) -> NDArray[np.complex128]:
    """Values of a transform, given on the half-grid, at places (..., 3) of the whole grid."""
    places = places % n
    is_mate = places[..., 2] > n // 2
    places = np.where(is_mate[..., None], -places % n, places)
    values = transform[places[..., 0], places[..., 1], places[..., 2]]
    return np.where(is_mate, values.conj(), values)
