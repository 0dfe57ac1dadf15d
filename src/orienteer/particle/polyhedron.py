"""Convex polyhedra of uniform density, with their exact transforms."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orienteer.errors import OrienteerError
from orienteer.particle.base import scattering_vectors
from orienteer.particle.bodies import PROTEIN_DENSITY, Body
from orienteer.particle.checked_numbers import as_numbers, as_positive


@dataclass(frozen=True, eq=False)
class Polyhedron(Body):
    """A solid bounded by flat faces.

    vertices_A : (V, 3) corners, Å.
    triangles : (F, 3) vertex numbers of the triangulated surface, counter-clockwise seen from outside.
    density : electrons per Å³.

    The transform is the sum over faces of (k·n) / (i k²) ∫ exp(ik·r) dS with k = 2πq; each face integral is a
    divided difference of the exponential, which is stable in every direction of q and for q → 0.
    """

    vertices_A: NDArray[np.float64]
    triangles: NDArray[np.int64]
    density: float = PROTEIN_DENSITY

    def __post_init__(self) -> None:
        as_numbers(self.density, "the density of a polyhedron")

    def __repr__(self) -> str:
        return (
            f"Polyhedron({len(self.vertices_A)} corners, radius {self.radius_A:.1f} Å, {self.density:g} e/Å³)"
        )

    @property
    def radius_A(self) -> float:
        return float(np.linalg.norm(self.vertices_A, axis=1).max())

    @property
    def volume_A3(self) -> float:
        centre = self.vertices_A.mean(axis=0)
        return float(np.linalg.det(self.vertices_A[self.triangles] - centre).sum() / 6)

    def amplitude(self, q_inv_A: ArrayLike, photon_energy_eV: float | None = None) -> NDArray[np.complex128]:
        from orienteer.particle._polyhedron_numba import polyhedron_transform

        q = scattering_vectors(q_inv_A)
        centre = self.vertices_A.mean(axis=0)
        vertices = self.vertices_A - centre
        corners = vertices[self.triangles]
        cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        double_areas = np.linalg.norm(cross, axis=1)
        transform = np.empty(q.shape[:-1], dtype=np.complex128)
        polyhedron_transform(
            np.ascontiguousarray(q.reshape(-1, 3)), vertices, self.triangles, double_areas,
            cross / double_areas[:, None], np.linalg.det(corners),
            float(np.linalg.norm(vertices, axis=1).max()), transform.reshape(-1),
        )  # fmt: skip
        return np.asarray(self.density * np.exp(2j * np.pi * (q @ centre)) * transform)


def convex_polyhedron(points_A: ArrayLike, density: float = PROTEIN_DENSITY) -> Polyhedron:
    """The convex hull of the points, (N, 3) Å with N ≥ 4 and not all in one plane."""
    from scipy.spatial import ConvexHull, QhullError

    points = as_numbers(points_A, "points_A")
    if points.ndim != 2 or points.shape[1] != 3 or len(points) < 4:
        raise OrienteerError(f"a polyhedron needs at least 4 points of shape (N, 3), got {points.shape}.")
    try:
        hull = ConvexHull(points)
    except QhullError as error:
        raise OrienteerError(
            "the points of a polyhedron lie in one plane.", "Give points that span a volume."
        ) from error
    numbers = np.full(len(points), -1)
    numbers[hull.vertices] = np.arange(len(hull.vertices))
    triangles = numbers[hull.simplices].astype(np.int64)
    vertices = points[hull.vertices]
    corners = vertices[triangles]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    inward = np.einsum("fi,fi->f", normals, hull.equations[:, :3]) < 0
    triangles[inward] = triangles[inward][:, [0, 2, 1]]
    # Leave out degenerate triangles: without an area they contribute nothing and have no normal.
    areas = np.linalg.norm(normals, axis=1)
    return Polyhedron(vertices, triangles[areas > 1e-12 * areas.max()], density)


def icosahedron(diameter_A: float, density: float = PROTEIN_DENSITY) -> Polyhedron:
    """A regular icosahedron with two-fold axes along x, y and z, like the point group I.

    diameter_A : from corner to opposite corner; between opposite faces it is 0.795 of that.
    """
    as_positive(diameter_A, "the diameter of an icosahedron", "Å")
    golden = (1 + np.sqrt(5)) / 2
    corners = [[0, s * golden, t] for s in (-1, 1) for t in (-1, 1)]
    points = np.array([np.roll(corner, turn) for corner in corners for turn in range(3)])
    return convex_polyhedron(points * (diameter_A / 2 / np.hypot(1, golden)), density)
