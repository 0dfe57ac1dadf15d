"""Point groups: closed, of the right order, along the documented axes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from orienteer.errors import OrienteerError
from orienteer.orientation.point_group import GOLDEN_RATIO, PointGroup, binary_icosahedral_group
from orienteer.orientation.quaternion import canonical, compose, inverse, to_axis_angle, to_matrix

ORDERS = {"C1": 1, "C2": 2, "C7": 7, "D2": 4, "D7": 14, "D12": 24, "T": 12, "O": 24, "I": 60}


def contains(group: PointGroup, quaternions: np.ndarray) -> bool:
    dots = np.abs(np.asarray(quaternions).reshape(-1, 4) @ group.quaternions.T)
    return bool(np.all(dots.max(axis=1) > 1 - 1e-12))


def axes_of(group: PointGroup, fold: int) -> np.ndarray:
    """Directions of the axes with a turn of exactly 360 / fold degrees, both senses."""
    axis, angle_deg = to_axis_angle(group.quaternions[1:])
    axis = axis[np.abs(angle_deg - 360 / fold) < 1e-6]
    return np.concatenate([axis, -axis])


@pytest.mark.parametrize(("name", "order"), ORDERS.items())
def test_a_group_is_closed_and_has_its_order(name: str, order: int) -> None:
    group = PointGroup(name)
    q = group.quaternions
    assert group.order == order == len(np.unique(q.round(9), axis=0))
    assert_allclose(q[0], [1, 0, 0, 0], atol=0)
    assert_allclose(np.linalg.norm(q, axis=1), 1, atol=1e-15)
    assert np.array_equal(q, canonical(q))
    assert contains(group, compose(q[:, None], q))
    assert contains(group, inverse(q))


def test_axes_are_where_the_documentation_puts_them() -> None:
    x, y, z = np.eye(3)
    tau = GOLDEN_RATIO

    def has(group: str, fold: int, direction: np.ndarray) -> bool:
        unit = np.asarray(direction) / np.linalg.norm(direction)
        return bool(np.any(np.linalg.norm(axes_of(PointGroup(group), fold) - unit, axis=1) < 1e-9))

    assert has("C7", 7, z)
    assert has("D7", 7, z)
    assert has("D7", 2, x)
    assert not has("D7", 2, y)
    for axis in (x, y, z):
        assert has("T", 2, axis)
        assert has("O", 4, axis)
        assert has("I", 2, axis)
        assert not has("T", 4, axis)
    assert has("T", 3, x + y + z)
    assert has("O", 3, x - y + z)
    assert has("I", 3, x + y + z)
    for signs in ((1, 1), (1, -1)):
        for shift in range(3):
            assert has("I", 5, np.roll([signs[0] * tau, signs[1], 0], shift))
    assert not has("I", 5, np.array([1, tau, 0]))


@pytest.mark.parametrize(
    ("given", "meant"), [("i", "I"), (" d7 ", "D7"), ("A5", "I"), ("a5", "I"), ("s4", "O"), ("c1", "C1")]
)
def test_names_are_read_in_any_case_and_from_dragonfly(given: str, meant: str) -> None:
    assert PointGroup(given) == PointGroup(meant)
    assert str(PointGroup(given)) == meant


@pytest.mark.parametrize("name", ["", "C0", "D1", "D0", "C100", "X", "II", "C-1", "C1.5", "Ih", "C٣"])
def test_an_unknown_name_says_what_exists(name: str) -> None:
    with pytest.raises(OrienteerError, match="C1 to C99, D2 to D99, T, O and I"):
        PointGroup(name)


def test_tetrahedral_lies_inside_octahedral_and_icosahedral() -> None:
    assert contains(PointGroup("O"), PointGroup("T").quaternions)
    assert contains(PointGroup("I"), PointGroup("T").quaternions)


def test_the_icosahedral_group_leaves_an_icosahedron_as_it_is() -> None:
    tau = GOLDEN_RATIO
    corners = np.array([np.roll([a * tau, b, 0], s) for a in (1, -1) for b in (1, -1) for s in range(3)])
    turned = np.einsum("gij,cj->gci", to_matrix(PointGroup("I").quaternions), corners)
    distance = np.linalg.norm(turned[:, :, None] - corners, axis=-1).min(axis=-1)
    assert distance.max() < 1e-12


def test_the_binary_icosahedral_group_holds_both_signs() -> None:
    group = binary_icosahedral_group()
    assert group.shape == (120, 4)
    assert np.array_equal(group[60:], -group[:60])


def test_elements_cannot_be_changed_by_accident() -> None:
    with pytest.raises(ValueError, match="read-only"):
        PointGroup("I").quaternions[0, 0] = 2
