"""Two intensities on one grid, as far as both reach."""

import numpy as np
import pytest

from orienteer.compare.intensity_grid import intensities_on_one_grid
from orienteer.compare.structure_density import intensity_of
from orienteer.errors import OrienteerError
from orienteer.particle.named_bodies import random_blobs
from orienteer.volume.volume import Volume

BODY = random_blobs(100, 8, seed=1)


def test_the_same_grid_is_left_as_it_is() -> None:
    volume = intensity_of(BODY, 21, 0.002)
    first, second, remarks = intensities_on_one_grid(volume, volume)
    assert first is second is volume
    assert remarks == ()


def test_the_smaller_voxels_and_the_shorter_reach_are_taken() -> None:
    first, second, remarks = intensities_on_one_grid(
        intensity_of(BODY, 41, 0.0012), intensity_of(BODY, 24, 0.0017)
    )
    assert first.voxel_size == second.voxel_size == (0.0012, 0.0012, 0.0012)
    assert first.shape == second.shape == (31, 31, 31)  # 11 voxels of 0.0017 are 15 of 0.0012
    assert abs(first.values - second.values).max() < 0.02 * first.values.max()
    assert "31³ voxels of 0.0012 1/A" in remarks[0]


def test_what_was_never_measured_stays_unknown() -> None:
    volume = intensity_of(BODY, 31, 0.002)
    values = volume.values.copy()
    values[12:19, 12:19, 12:19] = np.nan
    _, second, _ = intensities_on_one_grid(intensity_of(BODY, 61, 0.001), volume.with_values(values))
    assert np.isnan(second.values[30, 30, 30])
    assert not np.isnan(second.values[30, 30, 38])
    assert np.isnan(second.values).sum() == pytest.approx((7 * 2) ** 3, rel=0.25)


def test_what_cannot_be_compared_is_told() -> None:
    good = intensity_of(BODY, 21, 0.002)
    with pytest.raises(OrienteerError, match="a cube of cubes"):
        intensities_on_one_grid(good, Volume(good.values[:, :, 2:], 0.002, "reciprocal"))
    with pytest.raises(OrienteerError, match="a cube of cubes"):
        intensities_on_one_grid(good, Volume(good.values, (0.002, 0.002, 0.003), "reciprocal"))
    with pytest.raises(OrienteerError, match="hardly overlap"):
        intensities_on_one_grid(good, Volume(good.values, 2.0, "reciprocal"))
    with pytest.raises(OrienteerError, match="same everywhere"):
        intensities_on_one_grid(good, Volume(np.zeros((21, 21, 21)), 0.002, "reciprocal"))
    with pytest.raises(OrienteerError, match="has no values"):
        intensities_on_one_grid(Volume(np.full((4, 4, 4), np.nan), 0.002, "reciprocal"), good)
    with pytest.raises(OrienteerError, match="is a density"):
        intensities_on_one_grid(good, Volume(good.values, 2.0))
