"""Modes of the density that the data hardly see, because they hide in what was not measured.

A density inside a support is the sum of modes, the eigenvectors of "keep what lies in the support, then what
lies in unmeasured voxels of Fourier space, then in the support again".  The eigenvalue of a mode is the share
of its power that falls into unmeasured voxels: at 0 the data see all of it; near 1 the density may hold any
amount of it and fit the data as well.  Modes near 1 are smooth, because the voxels that are missing lie about
q = 0 (Thibault and others, Acta Cryst. A62, 248, 2006).

Only voxels inside the edge of the data count as unmeasured.  What lies beyond the edge is resolution that the
data do not have, which nobody expects of them.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, array_namespace, to_numpy
from orienteer.phase.half_grid import density_of, edge_of, rounded_radii, transform_of, voxel_counts

# Share of a mode's power that is not measured, from which on it counts as weak: its error is three times that
# of a mode that is measured whole.
WEAK = 0.9
MOST_MODES = 100
# Share of a shell that must be measured for it not to lie beyond the edge of the data.
INSIDE = 0.5


@dataclass(frozen=True, eq=False)
class WeakModes:
    """What the data leave open.

    eigenvalues : (K,) float64, falling; share of the power of each mode that is not measured.
    share : share of the density's power (sum of squares) that lies in the weak modes, 0 to 1.
    n_unmeasured : voxels inside the edge of the data that were not measured, the whole grid counted.
    is_complete : whether no further weak modes may exist beyond the ones that were looked for.
    modes : (K, n, n, n) float32 of unit power, or None where they were not kept.
    """

    eigenvalues: NDArray[np.float64]
    share: float
    n_unmeasured: int
    is_complete: bool = True
    modes: Array | None = None

    @property
    def number(self) -> int:
        """How many modes the data hardly see."""
        return int((self.eigenvalues > WEAK).sum())

    def words(self) -> str:
        """The same in a sentence."""
        if self.number == 0 and not self.is_complete:
            return "How much the missing centre hides could not be told."
        if self.number == 0:
            return "Every part of the density is held by the data."
        least = "" if self.is_complete else "at least "
        what = "one smooth mode" if self.number == 1 else f"{self.number} smooth modes"
        return (
            f"The data hardly see {least}{what} of the density inside its support, "
            f"which {'holds' if self.number == 1 else 'hold'} {self.share:.0%} of its power."
        )


def weak_modes(density: Array, support: Array, measured: Array, keep: bool = False) -> WeakModes:
    """Find the modes inside a support that unmeasured voxels hide, and how much of the density they are.

    density : (n, n, n) real.
    support : (n, n, n) bool.
    measured : (n, n, n // 2 + 1) bool, in the order of the FFT.
    keep : whether the modes themselves are returned.
    """
    xp: Any = array_namespace(density)
    n = edge_of(measured)
    hole = hole_of(measured)
    counts = xp.broadcast_to(xp.asarray(voxel_counts(n)), hole.shape)
    n_unmeasured, n_support = int(counts[hole].sum()), int(support.sum())
    if n_unmeasured == 0 or n_support < 3:
        return WeakModes(np.zeros(0), 0.0, n_unmeasured)
    # The eigenvalues add up to this number, and about as many are near 1 as it says, or fewer.
    total = n_unmeasured * n_support / n**3
    n_modes = min(math.ceil(1.2 * total) + 3, MOST_MODES, n_support - 2)
    values, vectors = _largest(support, hole, n_modes)
    chosen = values > WEAK
    inside = to_numpy(density[support]).astype(np.float64)
    power = float((density.astype(xp.float64) ** 2).sum())
    share = float(((inside @ vectors[:, chosen]) ** 2).sum() / power) if power > 0 else 0.0
    is_complete = (not bool(chosen.all()) and len(values) > 0) or n_modes == n_support - 2
    return WeakModes(
        values, share, n_unmeasured, is_complete, _in_the_box(support, vectors) if keep else None
    )


def hole_of(measured: Array) -> Array:
    """Unmeasured voxels inside the edge of the data, (n, n, n // 2 + 1) bool.

    The edge is the outermost shell of which half and more was measured; what it lacks itself lies beyond it.
    """
    xp: Any = array_namespace(measured)
    n = edge_of(measured)
    shell = rounded_radii(n)
    known = np.bincount(shell.ravel(), weights=to_numpy(measured).ravel())
    full = np.flatnonzero(known >= INSIDE * np.bincount(shell.ravel()))
    edge = int(full[-1]) if len(full) else -1
    return ~measured & xp.asarray(shell < edge)


def _largest(support: Array, hole: Array, n_modes: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The largest eigenvalues (K,), falling, and their modes (V, K) on the V voxels of the support.

    Lanczos' method runs on the CPU with the few numbers inside the support; the transforms run wherever the
    arrays are.
    """
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    xp: Any = array_namespace(support)
    n_support = int(support.sum())

    def hidden(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        box = xp.zeros(support.shape, dtype=xp.float64)
        box[support] = xp.asarray(numbers.ravel())
        unseen = density_of(xp.where(hole, transform_of(box), 0))
        return to_numpy(unseen[support])

    operator = LinearOperator((n_support, n_support), matvec=hidden, dtype=np.float64)
    # A start of ones, and not a random one: the same data give the same modes.
    first = np.ones(n_support) + 1e-3 * np.cos(np.arange(n_support))
    try:
        values, vectors = eigsh(operator, k=n_modes, which="LA", v0=first, tol=1e-4)
    except ArpackNoConvergence as some:  # those that have converged are the largest ones
        values, vectors = some.eigenvalues, some.eigenvectors
    order = np.argsort(-values)
    return np.clip(values[order], 0, 1), vectors[:, order]


def _in_the_box(support: Array, vectors: NDArray[np.float64]) -> Array:
    xp: Any = array_namespace(support)
    modes = xp.zeros((vectors.shape[1], *support.shape), dtype=xp.float32)
    for number, vector in enumerate(vectors.T):
        modes[number][support] = xp.asarray(vector, dtype=xp.float32)
    return modes
