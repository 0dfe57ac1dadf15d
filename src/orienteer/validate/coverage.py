"""Coverage: how much data there is in each direction of the particle at a given resolution.

A frame samples a circle on the sphere |q| = const.  If all frames show the particle from one side, there are
directions without any data, which a resolution that averages over all directions does not show.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orienteer.errors import OrienteerError
from orienteer.orientation.point_group import PointGroup, as_point_group
from orienteer.orientation.quaternion import inverse, rotate, to_matrix

# Points of the circle of a frame that are counted for each cell that it crosses.
_POINTS_PER_CELL = 3.0
_FRAMES_AT_ONCE = 1 << 22  # points


@dataclass(frozen=True)
class SphereCells:
    """A sphere divided into nearly square cells: bands of equal width, each cut into cells as wide as high.

    width_deg : of a cell.
    """

    width_deg: float

    @cached_property
    def _bands(self) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
        """Number of bands, cells in each, and number of the first cell of each."""
        n_bands = max(2, int(np.ceil(180 / self.width_deg)))
        middle = (np.arange(n_bands) + 0.5) * np.pi / n_bands
        # An even number of cells in each band, so that opposite directions lie in opposite cells.
        cells = 2 * np.maximum(2, np.rint(n_bands * np.sin(middle))).astype(np.int64)
        return n_bands, cells, np.concatenate([[0], np.cumsum(cells)])

    def __len__(self) -> int:
        return int(self._bands[2][-1])

    @cached_property
    def areas(self) -> NDArray[np.float64]:
        """(C,) share of the sphere in each cell."""
        n_bands, cells, _ = self._bands
        edges = np.cos(np.linspace(0, np.pi, n_bands + 1))
        return np.repeat((edges[:-1] - edges[1:]) / 2 / cells, cells)

    @cached_property
    def centres(self) -> NDArray[np.float64]:
        """(C, 3) unit vectors to the middle of each cell."""
        n_bands, cells, first = self._bands
        band = np.repeat(np.arange(n_bands), cells)
        polar = (band + 0.5) * np.pi / n_bands
        azimuth = 2 * np.pi * (np.arange(len(self)) - first[band] + 0.5) / cells[band]
        flat = np.sin(polar)
        return np.stack([flat * np.cos(azimuth), flat * np.sin(azimuth), np.cos(polar)], axis=1)

    def index(self, directions: NDArray[np.floating[Any]]) -> NDArray[np.int64]:
        """The cell of each direction (..., 3), which need not have length 1: (...)."""
        n_bands, cells, first = self._bands
        x, y, z = np.moveaxis(directions, -1, 0)
        polar = np.arctan2(np.hypot(x, y), z)
        band = np.minimum((polar * (n_bands / np.pi)).astype(np.int64), n_bands - 1)
        turn = np.mod(np.arctan2(y, x) / (2 * np.pi), 1.0)
        own = cells[band]
        return np.asarray(first[band] + np.minimum((turn * own).astype(np.int64), own - 1))


@dataclass(frozen=True, eq=False)
class Coverage:
    """How much data there is in each direction of the particle at one |q|.

    q_inv_A : the radius of the sphere.
    cell_deg : width of a cell, about one speckle there.
    directions : (C, 3) unit vectors in the particle's own frame.
    density : (C,) weight of the data relative to even coverage, which is 1 everywhere.
    areas : (C,) share of the sphere that each cell covers.
    n_frames : frames that were counted.
    """

    q_inv_A: float
    cell_deg: float
    directions: NDArray[np.float64]
    density: NDArray[np.float64]
    areas: NDArray[np.float64]
    n_frames: int

    @property
    def empty_share(self) -> float:
        """Share of all directions without any data."""
        return float(self.areas[self.density == 0].sum())

    @property
    def worst_direction(self) -> NDArray[np.float64]:
        """(3,) the direction with the least data around it; of empty ones, the farthest from any data.

        By Friedel's law the opposite direction is equivalent.
        """
        least = np.flatnonzero(self._around == self._around.min())
        return np.asarray(self.directions[least[np.argmax(self._gaps_deg[least])]])

    @property
    def largest_gap_deg(self) -> float:
        """Half the opening angle of the widest cone of directions without data; 0 if there is none."""
        return float(self._gaps_deg.max())

    @property
    def worst_density(self) -> float:
        """The mean density in the cell of the worst direction and its neighbours."""
        return float(self._around.min())

    @cached_property
    def _gaps_deg(self) -> NDArray[np.float64]:
        """(C,) angle to the nearest direction with data."""
        from scipy.spatial import KDTree

        filled = self.density > 0
        if not filled.any():
            return np.full(len(self.density), 90.0)
        apart = KDTree(self.directions[filled]).query(self.directions)[0]
        return np.asarray(np.degrees(2 * np.arcsin(np.minimum(apart / 2, 1.0))))

    @cached_property
    def _around(self) -> NDArray[np.float64]:
        """(C,) mean density of each cell and its neighbours, because single cells may be empty by chance."""
        from scipy.spatial import KDTree

        reach = 2 * np.sin(np.radians(1.6 * self.cell_deg) / 2)
        pairs = KDTree(self.directions).query_pairs(reach, output_type="ndarray")
        weight = self.areas * self.density
        total, area = weight.copy(), self.areas.copy()
        for a, b in (pairs.T, pairs.T[::-1]):
            np.add.at(total, a, weight[b])
            np.add.at(area, a, self.areas[b])
        return np.asarray(total / area)


def coverage(
    quaternions: ArrayLike,
    q_inv_A: ArrayLike,
    radius_inv_A: float,
    diameter_A: float,
    *,
    weights: ArrayLike | None = None,
    correction: ArrayLike | None = None,
    group: PointGroup | str = "C1",
) -> Coverage:
    """How much data the frames have in each direction of the sphere |q| = radius_inv_A.

    quaternions : (N, 4) orientations of the frames, scalar first; they turn the particle.
    q_inv_A : (P, 3) scattering vectors of the pixels that may be used, in the laboratory.
    diameter_A : of the particle; a cell is as wide as a speckle.
    weights : (N,) weight of each frame, such as its fluence; by default all equal.
    correction : (P,) sensitivity of each pixel; by default all equal.
    """
    poses = np.atleast_2d(np.asarray(quaternions, np.float64))
    q = np.asarray(q_inv_A, np.float64).reshape(-1, 3)
    own = np.ones(len(poses)) if weights is None else np.asarray(weights, np.float64)
    sensitive = np.ones(len(q)) if correction is None else np.asarray(correction, np.float64)
    speckle_inv_A = 1 / diameter_A
    length = np.linalg.norm(q, axis=1)
    near = np.flatnonzero((np.abs(length - radius_inv_A) <= speckle_inv_A / 2) & (length > 0))
    if not len(near):
        raise OrienteerError(
            f"there is no pixel at |q| = {radius_inv_A:.4g} 1/A (a resolution of {1 / radius_inv_A:.4g} A).",
            "Ask for a coarser resolution.",
        )
    cell_deg = float(np.clip(np.degrees(speckle_inv_A / radius_inv_A), 1.0, 45.0))
    cells = SphereCells(cell_deg)
    points, share = _thinned(q[near], sensitive[near], cell_deg)
    density = np.zeros(len(cells))
    used = np.flatnonzero(np.isfinite(poses).all(axis=1) & (own > 0))
    step = max(1, _FRAMES_AT_ONCE // len(points))
    for first in range(0, len(used), step):
        some = used[first : first + step]
        # A pattern samples the particle's own transform at R^T q.
        back = to_matrix(np.asarray(inverse(poses[some]))).astype(np.float32)
        seen = np.matmul(points.astype(np.float32), np.swapaxes(back, 1, 2))
        share_of_frame = np.outer(own[some], share).ravel()
        density += np.bincount(cells.index(seen).ravel(), share_of_frame, minlength=len(cells))
    density /= cells.areas
    # By Friedel's law the opposite direction is measured as well.
    density = density + density[cells.index(-cells.centres)]
    density = _symmetric(cells, density, as_point_group(group))
    mean = float((density * cells.areas).sum())
    return Coverage(
        radius_inv_A, cell_deg, cells.centres, density / mean if mean > 0 else density, cells.areas, len(used)
    )


def _thinned(
    q: NDArray[np.float64], weight: NDArray[np.float64], cell_deg: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Replace neighbouring pixels on the circle by one point with their total weight: (p, 3) and (p,)."""
    n = int(np.ceil(_POINTS_PER_CELL * 360 / cell_deg))
    turn = np.mod(np.arctan2(q[:, 1], q[:, 0]) / (2 * np.pi), 1.0)
    place = np.minimum((turn * n).astype(np.int64), n - 1)
    found, place = np.unique(place, return_inverse=True)
    total = np.bincount(place, weight, minlength=len(found))
    points = np.stack([np.bincount(place, weight * q[:, i]) for i in range(3)], axis=1) / total[:, None]
    return points, total.astype(np.float64)


def _symmetric(cells: SphereCells, density: NDArray[np.float64], group: PointGroup) -> NDArray[np.float64]:
    """The mean of the density (C,) over equivalent directions."""
    if group.order == 1:
        return density
    turned = np.asarray(rotate(group.quaternions[:, None], cells.centres))
    return np.asarray(density[cells.index(turned)].mean(axis=0))
