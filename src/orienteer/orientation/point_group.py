"""PointGroup: the rotations that leave a particle unchanged."""

import re
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray

from orienteer.errors import SettingsError
from orienteer.orientation.quaternion import canonical, compose, from_axis_angle

GOLDEN_RATIO = (1 + np.sqrt(5)) / 2
_DRAGONFLY_NAMES = {"A5": "I", "S4": "O"}
# The rotation groups of the regular polyhedra, the largest first.
POLYHEDRA = ("I", "O", "T")


@dataclass(frozen=True)
class PointGroup:
    """A chiral point group with its Schoenflies name: "C1", "Cn", "Dn", "T", "O" or "I" (n up to 99).

    A symmetric particle looks the same after its own rotation S, so the orientations R and R S (first S,
    then R) cannot be told apart: symmetry acts on the particle's side, on the right.

    Axes: the n-fold axis of Cn and Dn is z, and x is a two-fold axis of Dn; the two-fold axes of T and the
    four-fold axes of O are x, y, z, with three-fold axes along the cube diagonals; I has two-fold axes along
    x, y, z and five-fold axes along (±τ, ±1, 0) and its cyclic permutations, so that its elements are the
    vertices of the 600-cell and map every 600-cell grid onto itself.

    Names may be in upper or lower case; Dragonfly's A5 and S4 mean I and O.

    >>> PointGroup("a5"), PointGroup("a5").order
    (PointGroup(name='I'), 60)
    """

    name: str = "C1"

    def __post_init__(self) -> None:
        name = str(self.name).strip().upper()
        name = _DRAGONFLY_NAMES.get(name, name)
        if not re.fullmatch(r"C[1-9][0-9]?|D[2-9]|D[1-9][0-9]|T|O|I", name):
            raise SettingsError(
                f"there is no point group '{self.name}'.",
                "Point groups are C1 to C99, D2 to D99, T, O and I (also as A5 = I and S4 = O).",
            )
        object.__setattr__(self, "name", name)

    def __str__(self) -> str:
        return self.name

    @property
    def order(self) -> int:
        """Number of rotations in the group."""
        return len(self.quaternions)

    @cached_property
    def quaternions(self) -> NDArray[np.float64]:
        """The group's rotations, (order, 4) canonical unit quaternions, the identity first; read-only."""
        match self.name:
            case "T":
                elements = _tetrahedral()
            case "O":
                quarter_turn = from_axis_angle([0, 0, 1], 90)
                elements = np.concatenate([_tetrahedral(), compose(_tetrahedral(), quarter_turn)])
            case "I":
                elements = binary_icosahedral_group()[:60]
            case _:
                n = int(self.name[1:])
                elements = from_axis_angle([0, 0, 1], np.arange(n) * 360 / n)
                if self.name[0] == "D":
                    half_turn = from_axis_angle([1, 0, 0], 180)
                    elements = np.concatenate([elements, compose(elements, half_turn)])
        elements = canonical(elements)
        elements.setflags(write=False)
        return elements  # type: ignore[no-any-return]


def as_point_group(group: PointGroup | str) -> PointGroup:
    """The group itself, or the one with that name."""
    return group if isinstance(group, PointGroup) else PointGroup(group)


def _tetrahedral() -> NDArray[np.float64]:
    """Identity, half turns about x, y, z, and third turns about the cube diagonals, (12, 4)."""
    diagonals = [(0.5, *signs) for signs in product((0.5, -0.5), repeat=3)]
    return np.concatenate([np.eye(4), np.array(diagonals)])


@cache
def binary_icosahedral_group() -> NDArray[np.float64]:
    """The 120 vertices of the 600-cell, (120, 4): 60 canonical ones, identity first, then their negatives."""
    axes = np.eye(4)
    corners = np.array(list(product((0.5, -0.5), repeat=4)))
    golden = []
    for order in permutations(range(4)):
        if np.linalg.det(np.eye(4)[list(order)]) > 0:  # even permutations only
            for signs in product((0.5, -0.5), repeat=3):
                vertex = np.zeros(4)
                vertex[list(order)] = np.array([GOLDEN_RATIO, 1, 1 / GOLDEN_RATIO, 0]) * [*signs, 0]
                golden.append(vertex)
    half = np.concatenate([axes, corners, np.array(golden)])
    half = half[np.all(canonical(half) == half, axis=1)]
    group = np.concatenate([half, -half])
    group.setflags(write=False)
    return group
