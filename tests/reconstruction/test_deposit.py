"""What merged frames leave behind."""

import numpy as np
import pytest

from orienteer.orientation.quaternion import random_uniform, to_matrix
from orienteer.reconstruction.orienting.deposit import Deposit
from orienteer.slicing.patches import PointPatches
from orienteer.slicing.sums import make_sums
from orienteer.slicing.trilinear import insert_slices, slice_volume

EDGE = 17


@pytest.mark.parametrize("by_pixel", [False, True], ids=["by row", "by pixel"])
@pytest.mark.parametrize("has_weights", [False, True], ids=["all pixels", "some missing"])
def test_rows_without_frames_leave_nothing_and_the_others_what_slices_have_not(
    by_pixel: bool, has_weights: bool
) -> None:
    rng = np.random.default_rng(2)
    points = rng.uniform(-4, 4, size=(90, 3)).astype(np.float32)
    matrices = to_matrix(random_uniform(12, rng)).astype(np.float32)
    model = rng.gamma(2.0, size=(1, EDGE, EDGE, EDGE)).astype(np.float32)
    rows, pixels = rng.uniform(1, 2, 12), rng.uniform(0.1, 1, 90).astype(np.float32)
    rows[[0, 3, 4, 9, 11]] = 0.0
    weights = (rows[:, None] * pixels).astype(np.float32)
    if has_weights:
        weights *= rng.uniform(size=weights.shape) < 0.7
    values = rng.poisson(weights).astype(np.float32)
    excess = values - weights * slice_volume(model[0], points, matrices)
    wanted = np.zeros((EDGE, EDGE, EDGE, 2))
    insert_slices(wanted, points, matrices, excess, None, None, weights=weights)

    def laid_out(array: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(array.T if by_pixel else array)

    deposit = Deposit([make_sums(EDGE, "cpu")], None, np.zeros(12), model)
    deposit.add(
        0, PointPatches.of(points, "cpu"), matrices, laid_out(values), rows, pixels, by_pixel,
        laid_out(weights) if has_weights else None,
    )  # fmt: skip
    np.testing.assert_allclose(deposit.sums[0].finish(), wanted, atol=1e-5)
