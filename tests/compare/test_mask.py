"""A mask holds the particle, has a smooth edge, and is not led astray by noise."""

import numpy as np
import pytest
from numpy.typing import NDArray

from orienteer.compare.mask import filled_share, soft_mask
from orienteer.compute.arrays import import_cupy
from orienteer.errors import OrienteerError

N, RADIUS = 40, 9.0
DISTANCE = np.linalg.norm(np.indices((N, N, N)) - N // 2, axis=0)
BALL = (DISTANCE <= RADIUS).astype(np.float64)


def noisy(strength: float = 0.5) -> NDArray[np.float64]:
    return BALL + strength * np.random.default_rng(1).normal(size=BALL.shape)


@pytest.mark.parametrize("strength", [0.0, 0.5])
def test_it_is_one_inside_zero_far_outside_and_falls_between(strength: float) -> None:
    mask = soft_mask(noisy(strength), 2.0, dilate_A=4, edge_A=8)
    assert mask.dtype == np.float32
    assert np.all(mask[DISTANCE <= RADIUS] == 1)
    assert np.all(mask[DISTANCE > RADIUS + 8.5] == 0)
    line = mask[N // 2, N // 2, N // 2 :]
    assert np.all(np.diff(line) <= 1e-6)
    assert np.count_nonzero((line > 0.02) & (line < 0.98)) >= 3


def test_a_volume_keeps_as_many_voxels() -> None:
    mask = soft_mask(noisy(0.1), 2.0, volume_A3=8 * 3000.0, dilate_A=0, edge_A=0)
    assert set(np.unique(mask)) == {0, 1}
    assert mask.sum() == pytest.approx(3000, rel=0.01)
    assert filled_share(mask) == pytest.approx(3000 / N**3, rel=0.01)


def test_a_threshold_is_taken_as_given() -> None:
    mask = soft_mask(BALL, 1.0, threshold=0.5, dilate_A=0, edge_A=0)
    assert mask.sum() == pytest.approx(BALL.sum(), rel=0.1)  # the blur takes a little off a ball


def test_small_islands_are_left_out_and_second_parts_kept() -> None:
    values = BALL.copy()
    values[2:6, 2:6, 2:6] = 1
    assert soft_mask(values, 1.0, dilate_A=0, edge_A=0)[:8, :8, :8].sum() == 0
    values[1:9, 1:9, 1:9] = 1
    assert soft_mask(values, 1.0, dilate_A=0, edge_A=0)[3:7, 3:7, 3:7].all()


def test_what_cannot_be_masked_is_told() -> None:
    with pytest.raises(OrienteerError, match="same everywhere"):
        soft_mask(np.zeros((8, 8, 8)), 1.0)
    with pytest.raises(OrienteerError, match="nothing to mask"):
        soft_mask(BALL, 1.0, threshold=5)
    with pytest.raises(OrienteerError, match="not both"):
        soft_mask(BALL, 1.0, threshold=5, volume_A3=4)
    with pytest.raises(OrienteerError, match="the box has 64000"):
        soft_mask(BALL, 1.0, volume_A3=1e6)
    with pytest.raises(OrienteerError, match="reach out"):
        soft_mask(BALL, 1.0, dilate_A=-1)
    with pytest.raises(OrienteerError, match="no size"):
        soft_mask(BALL, -1.0)
    with pytest.raises(OrienteerError, match="no finite number"):
        soft_mask(np.where(BALL > 0, np.nan, BALL), 1.0)


@pytest.mark.gpu
def test_the_gpu_makes_the_same_mask() -> None:
    cupy = import_cupy()
    assert cupy is not None
    found = soft_mask(cupy.asarray(noisy()), 2.0)
    np.testing.assert_allclose(found.get(), soft_mask(noisy(), 2.0), atol=1e-4)
