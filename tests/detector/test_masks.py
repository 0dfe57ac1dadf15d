"""Masks have three levels, and the stricter one wins."""

import numpy as np
import pytest

from orienteer.detector.masks import (
    PixelUse,
    check_mask,
    combine_masks,
    mask_from_bad,
    mask_from_good,
    mask_from_radii,
)
from orienteer.errors import OrienteerError


def test_the_levels_are_those_of_the_conventions() -> None:
    assert [PixelUse.ORIENT_AND_MERGE, PixelUse.MERGE_ONLY, PixelUse.NEVER] == [0, 1, 2]


def test_the_stricter_mask_wins_in_any_order() -> None:
    one, other = np.array([[0, 1], [2, 0]]), np.array([[1, 0], [1, 2]])
    expected = [[1, 1], [2, 2]]
    assert combine_masks(one, other).tolist() == expected
    assert combine_masks(other, one).tolist() == expected


def test_masks_of_different_shapes_are_not_combined() -> None:
    with pytest.raises(OrienteerError, match="different shapes"):
        combine_masks([0, 1], [0, 1, 2])


def test_good_and_bad_booleans_are_opposite() -> None:
    flags = np.array([True, False, True])
    assert np.array_equal(mask_from_good(flags), mask_from_bad(~flags))


@pytest.mark.parametrize("mask", [[0, 3], [-1, 0], [0.0, 1.0], [True, False], [[0, 1, 2]]])
def test_what_is_not_a_level_is_refused(mask: list[object]) -> None:
    with pytest.raises(OrienteerError):
        check_mask(np.array(mask), (2,))


def test_radii_are_distances_from_the_beam_and_not_from_the_sample() -> None:
    positions = np.array([[0.0, 0.0, 5.0], [0.02, 0.0, 0.1], [0.0, 0.03, 0.1]])
    assert mask_from_radii(positions, 0.01, 0.025).tolist() == [2, 0, 1]
