"""A symmetrised volume is the same from all equivalent sides, and a symmetric one stays as it is."""

import numpy as np
import pytest

from orienteer.compare.symmetrising import mean_over_group, symmetrised
from orienteer.compare.turning import LINEAR, rotate_volume, sample
from orienteer.orientation.point_group import as_point_group
from orienteer.orientation.quaternion import to_matrix


def blob(n: int = 25) -> np.ndarray:
    axis = np.arange(n) - n // 2
    x, y, z = np.meshgrid(axis, axis, axis, indexing="ij")
    return np.exp(-((x - 3) ** 2 + (y - 1) ** 2 + (z - 2) ** 2) / 12.0)


@pytest.mark.parametrize("name", ["C4", "D3", "T", "I"])
def test_it_is_the_mean_of_the_turned_volumes(name: str) -> None:
    cube, group = blob(), as_point_group(name)
    slow = np.mean([rotate_volume(cube, quaternion) for quaternion in group.quaternions], axis=0)
    known = np.isfinite(slow)
    assert symmetrised(cube, group, radius=9)[known] == pytest.approx(
        np.where(distance() <= 9, slow, cube)[known], abs=1e-9
    )
    friedel, slow = cube + cube[::-1, ::-1, ::-1], slow + slow[::-1, ::-1, ::-1]
    assert np.abs(mean_over_group(friedel, group) - np.nan_to_num(slow)).max() < 0.1


def distance(n: int = 25) -> np.ndarray:
    axis = np.arange(n) - n // 2
    return np.sqrt(axis[:, None, None] ** 2 + axis[:, None] ** 2 + axis**2)


def test_what_was_never_measured_has_no_part() -> None:
    cube, group = blob(), as_point_group("C2")
    hidden = cube.copy()
    hidden[distance() < 2] = np.nan
    hidden[18:, 12, 12] = np.nan  # the other half of the axis turns onto it
    found = symmetrised(hidden, group)
    assert np.isnan(found[distance() < 1.5]).all()
    assert np.isfinite(found[20, 12, 12])  # its equivalent is known
    both = (distance() > 3) & (distance() < 5)
    assert found[both] == pytest.approx(symmetrised(cube, group)[both], abs=2e-2)


def test_without_symmetry_nothing_changes() -> None:
    cube = blob()
    assert symmetrised(cube, as_point_group("C1")) is cube


@pytest.mark.parametrize("name", ["C1", "C3", "C4", "D2", "D3", "T", "O", "I"])
def test_turns_that_lead_from_voxels_to_voxels_are_no_shortcut_to_another_mean(name: str) -> None:
    """It is the mean over all turns, each interpolated linearly, but for rounding."""
    group, n = as_point_group(name), 13
    cube = np.random.default_rng(5).normal(size=(n, n, n)).astype(np.float32)
    cube += cube[::-1, ::-1, ::-1]
    places = np.stack(np.meshgrid(*[np.arange(n) - n // 2] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    slow = sample(cube, places.astype(np.float64), to_matrix(group.quaternions), LINEAR).mean(axis=0)
    slow[np.sum(places**2, axis=1) > (n // 2 - 1) ** 2] = 0
    np.testing.assert_allclose(mean_over_group(cube, group).ravel(), slow, atol=2e-6)
