"""The 600-cell grid: exactly 10 (5 n^3 + n) rotations, the most even of the grids offered here.

The 600-cell is the regular body in 4D whose surface is 600 tetrahedra between 120 vertices.  The grid divides
every edge into n parts, fills faces and cells to match, projects the points onto the 3-sphere and keeps one
point of each pair q, -q, which are the same rotation (Loh & Elser, Phys. Rev. E 80, 026705, 2009).  The grid
and its weights are invariant under the icosahedral group on either side, and grid n is contained in grid 2n.
"""

from collections.abc import Iterator
from functools import cache, partial
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from orienteer.errors import OrienteerError
from orienteer.orientation.point_group import GOLDEN_RATIO, binary_icosahedral_group
from orienteer.orientation.pose_grid import PoseGrid
from orienteer.orientation.quaternion import canonical

# Flat volume that belongs to a point, by the number of corners of its element (1: vertex, 4: cell).  A point
# in a face or a cell has a whole lattice volume around it.  At edges and vertices the cells do not fill flat
# space; with these shares the volumes of all points add up to 600 cells of n^3 / 6 each, for every n.
_SHARE = {1: 5 / 6, 2: 35 / 36, 3: 1.0, 4: 1.0}
MOST_DIVISIONS = 100  # 50 million rotations, 2 GB


def n_rotations(n: int) -> int:
    """Number of rotations in the 600-cell grid with n divisions of each edge.

    >>> [n_rotations(n) for n in (1, 4, 10, 20)]
    [60, 3240, 50100, 400200]
    """
    return 10 * (5 * n**3 + n)


def covering_bound_deg(n: int) -> float:
    """Upper bound of the covering radius in degrees: 4 / (tau^3 n) radians = 54.1 / n degrees.

    The widest holes are the octahedra of the divided tetrahedra (circumradius edge / sqrt 2), and projection
    onto the sphere stretches them most at a cell's centre.

    >>> round(covering_bound_deg(10), 2)
    5.41
    """
    return float(np.degrees(4 / (GOLDEN_RATIO**3 * n)))


def six_hundred_cell(n: int) -> PoseGrid:
    """The grid with n divisions of each edge of the 600-cell, with quadrature weights."""
    if not 1 <= n <= MOST_DIVISIONS:
        raise OrienteerError(
            f"the 600-cell cannot be divided {n} times.",
            f"Give a number from 1 (60 rotations) to {MOST_DIVISIONS} ({n_rotations(MOST_DIVISIONS)}).",
        )
    quaternions, weights = [], []
    for corners, cell_centre in _elements():
        barycentric = _interior_points(n, corners.shape[1])
        points = np.tensordot(corners, barycentric, axes=(1, 1)).swapaxes(1, 2)  # (element, point, 4)
        length = np.sqrt(np.einsum("ebi,ebi->eb", points, points))
        # Solid angle in 4D of a volume in the flat cell: cosine of its slant over the cube of its distance.
        slant = np.einsum("ebi,ei->eb", points, cell_centre) / length
        weights.append((_SHARE[corners.shape[1]] * slant / length**3).ravel())
        quaternions.append((points / length[..., None]).reshape(-1, 4))
    weight = np.concatenate(weights)
    return PoseGrid(
        # Before the projection, components are (a + b tau) / 2 with integers a, b, so a component that is not
        # zero is at least of the order 1 / n: rounding cannot decide its sign.
        quaternions=canonical(np.concatenate(quaternions)),
        log_weights=np.log(weight / weight.sum()),
        kind="600-cell",
        level=n,
        finer=partial(six_hundred_cell, 2 * n),
    )


def _interior_points(n: int, n_corners: int) -> NDArray[np.float64]:
    """All barycentric coordinates of positive integers with the sum n, (B, n_corners)."""
    cuts = np.array(list(combinations(range(1, n), n_corners - 1)), dtype=np.float64)
    cuts = cuts.reshape(-1, n_corners - 1) if n_corners > 1 else np.empty((1, 0))
    return np.diff(cuts, axis=1, prepend=0.0, append=float(n))


@cache
def _elements() -> tuple[tuple[NDArray[np.float64], NDArray[np.float64]], ...]:
    """Corners (E, m, 4) and the unit centre (E, 4) of one adjoining cell, for vertices, edges, faces, cells.

    One of each pair of opposite elements is kept, so that together they give every rotation once.
    """
    vertices = binary_icosahedral_group()
    cells = list(_simplices())[-1]
    centres = vertices[cells].sum(axis=1)
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    elements = []
    for simplices in _simplices():
        middle = vertices[simplices].sum(axis=1)
        simplices = simplices[np.all(canonical(middle) == middle + 0.0, axis=1)]
        # The adjoining cells are mirror images of each other, so any of them will do: take the first.
        membership = np.zeros((len(cells), len(vertices)), dtype=bool)
        np.put_along_axis(membership, cells, True, axis=1)
        adjoining = np.all(membership[:, simplices], axis=2)
        elements.append((vertices[simplices], centres[adjoining.argmax(axis=0)]))
    return tuple(elements)


def _simplices() -> Iterator[NDArray[np.int64]]:
    """Vertex numbers of the 120 vertices, 720 edges, 1200 faces and 600 cells of the 600-cell."""
    vertices = binary_icosahedral_group()
    adjacent = np.abs(vertices @ vertices.T - GOLDEN_RATIO / 2) < 1e-9
    simplices = np.arange(len(vertices))[:, None]
    yield simplices
    for _ in range(3):
        joins_all = np.all(adjacent[simplices], axis=1) & (np.arange(len(vertices)) > simplices[:, -1:])
        row, added = np.nonzero(joins_all)
        simplices = np.column_stack([simplices[row], added])
        yield simplices
