"""Exact sums of merged slices against those of the frames themselves."""

from types import SimpleNamespace

import numpy as np
import pytest

from orienteer.mtip.exact_deposit import ExactSums
from orienteer.mtip.relative_grid import RelativeGrid
from orienteer.orientation.point_group import as_point_group
from orienteer.orientation.quaternion import to_matrix

GRID = RelativeGrid(15, 1 / 400, 100.0, "cpu")


@pytest.mark.parametrize("group", ["C1", "C3"])
def test_sums_are_those_of_all_pixels_at_all_equivalent_places(group: str, dense: SimpleNamespace) -> None:
    rng = np.random.default_rng(0)
    turns = to_matrix(as_point_group(group).quaternions)
    points, matrices = dense.ewald_points(4, 6 / 400), dense.random_turns(5)
    photons, exposure = rng.poisson(3.0, (5, 16)).astype(float), rng.uniform(1, 4, (5, 16))
    exposure[2, 3] = 0.0  # a pixel that is missing there
    counted = rng.uniform(0.5, 1, 16)
    sums = ExactSums(GRID, points, counted, turns)
    sums.add(matrices[:2], photons[:2], exposure[:2])
    sums.add(matrices[2:], photons[2:], exposure[2:])
    found = sums.finish()
    q = np.concatenate([dense.turned(points, turn @ matrices) for turn in turns])
    A = dense.intensity_matrix(GRID.n, GRID.voxel_A, q)
    seen = np.where(exposure > 0, photons, 0.0)
    right = np.tile((seen * counted).ravel(), len(turns)) / len(turns)
    expected = (A.conj().T @ right).real.reshape((GRID.n,) * 3)
    assert np.abs(found.right_side - expected).max() < 1e-3 * np.abs(expected).max()
    assert found.total_weight == pytest.approx((exposure * counted).sum(), rel=1e-4)
    shown = exposure > 0
    square = (photons**2 / np.where(shown, exposure, 1) * counted * shown).sum()
    assert found.data_square == pytest.approx(square, rel=1e-6)


def test_nothing_added_is_nothing() -> None:
    sums = ExactSums(GRID, np.zeros((1, 3)), np.ones(1), np.eye(3)[None])
    assert sums.finish().total_weight == 0
