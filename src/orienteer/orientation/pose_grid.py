"""PoseGrid: a finite set of orientations that represents all, with weights, children and neighbours."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orienteer.compute.arrays import to_numpy
from orienteer.errors import OrienteerError
from orienteer.orientation.point_group import PointGroup, as_point_group
from orienteer.orientation.quaternion import as_quaternions, compose, normalise

if TYPE_CHECKING:
    from orienteer.orientation.reduction import Refinement


@dataclass(frozen=True, eq=False)
class PoseGrid:
    """K orientations with quadrature weights, and a way to the next finer grid.

    quaternions : (K, 4) float64 unit quaternions, read-only.
    log_weights : (K,) float64, logarithms of the weights, which sum to 1: the prior of a uniform orientation.
    kind : "600-cell", "hopf" or "super-fibonacci".
    level : the fineness: divisions n of the 600-cell, Hopf level, or number of super-Fibonacci poses.
    point_group : the particle's symmetry.  The grid holds one of the equivalents R S of each orientation, and
        all distances are the smallest among equivalents.
    finer : function that makes the next finer grid, in that grid's natural order.
    children_in_order : whether this order already lists the 8 children of pose 0, then of pose 1, and so on.
    """

    quaternions: NDArray[np.float64]
    log_weights: NDArray[np.float64]
    kind: str
    level: int
    finer: "Callable[[], PoseGrid]"
    point_group: PointGroup = field(default_factory=PointGroup)
    children_in_order: bool = False

    def __post_init__(self) -> None:
        _, quaternions = as_quaternions(to_numpy(self.quaternions))
        log_weights = np.asarray(self.log_weights, dtype=np.float64)
        if quaternions.ndim != 2 or log_weights.shape != quaternions.shape[:1] or len(log_weights) == 0:
            raise OrienteerError(
                f"a pose grid needs quaternions (K, 4) and log_weights (K,), K at least 1; "
                f"got {quaternions.shape} and {log_weights.shape}."
            )
        if not abs(np.exp(log_weights).sum() - 1) < 1e-6:
            raise OrienteerError(
                f"the weights of a pose grid sum to {np.exp(log_weights).sum():.6g}, not to 1."
            )
        if not np.all(np.abs(np.einsum("ki,ki->k", quaternions, quaternions) - 1) < 1e-6):
            raise OrienteerError(
                "the quaternions of a pose grid must have length 1.", "Normalise them first."
            )
        for name, array in (("quaternions", quaternions.view()), ("log_weights", log_weights.view())):
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    def __len__(self) -> int:
        return len(self.quaternions)

    def __repr__(self) -> str:
        return f"PoseGrid({self.kind}, level {self.level}, {self.point_group}, {len(self)} poses)"

    @property
    def weights(self) -> NDArray[np.float64]:
        """Quadrature weights, (K,), which sum to 1."""
        return np.exp(self.log_weights)

    # Levels ---------------------------------------------------------------------------------------------

    @cached_property
    def _refinement(self) -> "Refinement":
        from orienteer.orientation.reduction import refine

        return refine(self)

    def fine(self) -> "PoseGrid":
        """The next finer grid, with about 8 times as many poses; the children of a pose follow each other."""
        return self._refinement.fine

    @property
    def child_start(self) -> NDArray[np.int64]:
        """Index of the first child of every pose in ``fine()``, then the number of all children, (K + 1,)."""
        return self._refinement.start

    def children(self, k: int) -> range:
        """The children of pose k in ``fine()``, a contiguous range; each fine pose has exactly one parent."""
        if not 0 <= k < len(self):
            raise OrienteerError(
                f"there is no pose {k} in a grid of {len(self)} poses.", "Poses are counted from 0."
            )
        return range(int(self.child_start[k]), int(self.child_start[k + 1]))

    def reduced(self, group: PointGroup | str) -> "PoseGrid":
        """The same grid for a symmetric particle: one of all equivalents R S, weights summing to 1."""
        from orienteer.orientation.reduction import reduce_grid

        return reduce_grid(self, as_point_group(group))

    def turned(self, quaternion: ArrayLike) -> "PoseGrid":
        """The grid with every pose q replaced by q t; only for a grid that no symmetry has reduced.

        quaternion : (4,), the turn t, which moves the grid relative to the axes of a symmetric particle.  If
            the grid itself has the symmetry, it holds all equivalents of each of its poses, which say the
            same about the particle; a turned grid holds poses that are not equivalent instead.
        """
        if self.point_group.order > 1:
            raise OrienteerError(
                f"a grid that was reduced by {self.point_group} cannot be turned.", "Turn the full grid (C1)."
            )
        turn = normalise(to_numpy(quaternion))
        quaternions = np.asarray(compose(self.quaternions, turn))
        return replace(self, quaternions=quaternions, finer=partial(_finer_and_turned, self, turn))

    # Neighbours -----------------------------------------------------------------------------------------

    @cached_property
    def equivalents(self) -> NDArray[np.float64]:
        """All poses with their equivalents q S and both signs, (K * order * 2, 4), grouped by pose."""
        equivalents = compose(self.quaternions[:, None], self.point_group.quaternions)
        return np.stack([equivalents, -equivalents], axis=2).reshape(-1, 4)

    @cached_property
    def tree(self) -> Any:
        """A k-d tree of ``equivalents``; entry i belongs to pose i // (2 * order)."""
        from scipy.spatial import KDTree

        # The poses are evenly spread, so the tree that is quicker to build is as quick to search.
        return KDTree(self.equivalents, compact_nodes=False, balanced_tree=False)

    def near(self, quaternion: ArrayLike, angle_deg: float) -> NDArray[np.int64]:
        """Indices of all poses within an angle of one orientation (4,), ascending, on the CPU."""
        if angle_deg >= 180:
            return np.arange(len(self))
        found = self.tree.query_ball_point(normalise(to_numpy(quaternion)), chord_of_angle(angle_deg) + 1e-12)
        return np.unique(np.asarray(found, dtype=np.int64) // (2 * self.point_group.order))

    def nearest(self, quaternions: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Index of the nearest pose (...) and its distance in degrees (...) for orientations (..., 4)."""
        chord, entry = self.tree.query(normalise(to_numpy(quaternions)))
        return np.asarray(entry) // (2 * self.point_group.order), angle_of_chord(chord)

    @cached_property
    def covering_radius_deg(self) -> float:
        """Measured distance in degrees from the orientation that is farthest from all poses to its nearest.

        Exact for up to 8 000 poses (equivalents counted).  In larger grids 100 000 random orientations find
        the holes, and the deepest ones are measured exactly: a lower bound, at most a few per cent too small.
        """
        from orienteer.orientation.covering import covering_radius_deg

        return covering_radius_deg(self)

    @cached_property
    def closest_pair_deg(self) -> float:
        """Smallest distance in degrees between two different poses; 180 in a grid of one pose."""
        if len(self) == 1:
            return 180.0
        own = 2 * self.point_group.order
        n_neighbours = 2
        while True:  # the nearest entries may be the pose's own equivalents; take more until all find another
            chords, entries = self.tree.query(self.quaternions, k=n_neighbours)
            foreign = np.where(entries // own == np.arange(len(self))[:, None], np.inf, chords)
            if np.all(np.isfinite(foreign.min(axis=1))):
                return float(angle_of_chord(foreign.min()))
            n_neighbours *= 2


def _finer_and_turned(grid: PoseGrid, turn: NDArray[np.float64]) -> PoseGrid:
    """The next finer grid, turned as well; a module-level function, so that grids can be pickled."""
    return grid.finer().turned(turn)


def chord_of_angle(angle_deg: float) -> float:
    """Distance in 4D between unit quaternions of rotations an angle apart (twice the angle between them)."""
    return float(2 * np.sin(np.radians(angle_deg) / 4))


def angle_of_chord(chord: ArrayLike) -> NDArray[np.float64]:
    """Rotation angle in degrees between unit quaternions of matching sign at a distance in 4D."""
    half_chord = np.minimum(np.asarray(chord, dtype=np.float64) / 2, 1)
    return np.asarray(np.degrees(4 * np.arcsin(half_chord)))
