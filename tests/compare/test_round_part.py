"""The middle of a body is found, and about it a round body is nothing but round."""

import numpy as np
import pytest
from numpy.typing import NDArray

from orienteer.compare.fsc import half_transform
from orienteer.compare.round_part import RoundPart, centroid


def ball(n: int, centre: NDArray[np.float64]) -> NDArray[np.float64]:
    points = np.moveaxis(np.indices((n, n, n)), 0, -1)
    return np.asarray(np.exp(-((points - centre) ** 2).sum(-1) / 3))


@pytest.mark.parametrize("n", [15, 16])
def test_a_round_body_has_nothing_but_a_round_part_about_its_middle(n: int) -> None:
    centre = np.array([n // 2 + 0.5, n // 2 - 0.7, n // 2])
    transform = half_transform(ball(n, centre))
    found = RoundPart(transform, np.full(3, float(n // 2)) + 0.6, 1, n // 2)
    np.testing.assert_allclose(found.middle, centre, atol=0.07)
    assert np.linalg.norm(found.of(transform) - transform) < 0.04 * np.linalg.norm(transform)


def test_a_round_part_is_the_same_for_a_body_turned_about_its_middle() -> None:
    n = 21
    values = ball(n, np.array([10.0, 10.0, 12.0])) + 0.5 * ball(n, np.array([13.0, 9.0, 10.0]))
    transforms = [half_transform(x) for x in (values, np.rot90(values, axes=(0, 1)))]
    middle = np.full(3, 10.0)
    part = RoundPart(half_transform(ball(n, middle)), middle, 1, n // 2)
    one, other = (part.of(transform) for transform in transforms)
    np.testing.assert_allclose(one, other, atol=1e-9 * np.abs(one).max())
    assert np.linalg.norm(transforms[0] - one) > 0.2 * np.linalg.norm(one)


def test_the_centroid_is_that_of_what_is_positive() -> None:
    np.testing.assert_allclose(centroid(ball(16, np.array([7.0, 8.5, 8.0]))), [7, 8.5, 8], atol=1e-3)
    np.testing.assert_array_equal(centroid(-np.ones((8, 8, 8))), [4, 4, 4])
