"""Two densities on one grid show what they showed, and what had to be done is said."""

import numpy as np
import pytest

from orienteer.compare.common_grid import on_one_grid
from orienteer.compare.structure_density import density_of
from orienteer.errors import OrienteerError
from orienteer.particle.structure import blobs
from orienteer.volume.volume import Volume

BODY = blobs([[0, 0, 0], [20, 0, 0], [0, 24, 8], [-10, -12, 20]], [1, 0.9, 1.1, 0.8], 6)


def test_the_same_grid_is_left_as_it_is() -> None:
    volume = density_of(BODY, 24, 4.0)
    first, second, voxel_A, remarks = on_one_grid(volume, volume)
    assert first.values is volume.values
    assert second.values is volume.values
    assert (voxel_A, remarks) == (4.0, ())


def test_the_larger_voxels_are_taken_and_both_boxes_are_held() -> None:
    fine, coarse = density_of(BODY, 32, 3.0), density_of(BODY, 31, 4.0)
    for pair in ((fine, coarse), (coarse, fine)):
        first, second, voxel_A, remarks = on_one_grid(*pair)
        assert voxel_A == 4
        assert first.shape == second.shape == (31, 31, 31)
        np.testing.assert_allclose(first.values, second.values, atol=0.01 * first.values.max())
        assert "31 x 31 x 31 voxels of 4 A" in remarks[0]


@pytest.mark.parametrize(("n", "voxel_A", "is_told"), [(31, 4.03, False), (31, 4.1, True), (32, 4.0, True)])
def test_grids_that_hardly_differ_are_brought_onto_one_without_a_word(
    n: int, voxel_A: float, is_told: bool
) -> None:
    first, second, _, remarks = on_one_grid(density_of(BODY, 31, 4.0), density_of(BODY, n, voxel_A))
    assert first.shape == second.shape
    assert first.voxel_size == second.voxel_size
    assert bool(remarks) == is_told


def test_a_box_that_is_no_cube_is_padded() -> None:
    whole = density_of(BODY, 32, 4.0)
    part = Volume(whole.values[2:30, :, 4:28], 4.0)
    _, found, _, remarks = on_one_grid(whole, part)
    np.testing.assert_allclose(found.values, whole.values, atol=0.01 * whole.values.max())
    assert "28 x 32 x 24" in remarks[0]


def test_a_level_of_empty_space_is_kept_and_makes_no_edge() -> None:
    whole = density_of(BODY, 32, 4.0)
    part = Volume(whole.values[4:29, 4:29, 4:29] + 7, 4.0)
    _, found, _, _ = on_one_grid(whole, part)
    np.testing.assert_allclose(found.values - 7, whole.values, atol=0.02 * whole.values.max())


def test_voxels_that_are_no_cubes_become_such() -> None:
    whole = density_of(BODY, 33, 3.0)
    stretched = Volume(whole.values[:, :, ::2], (3.0, 3.0, 6.0))
    _, found, voxel_A, remarks = on_one_grid(stretched, stretched)
    assert voxel_A == 6
    assert "3 x 3 x 6 A" in remarks[0]
    assert len(set(found.shape)) == 1


def test_the_place_of_the_reference_is_kept() -> None:
    reference = Volume(density_of(BODY, 24, 4.0).values, 4.0, origin=(10.0, 20.0, 30.0))
    _, second, _, _ = on_one_grid(reference, density_of(BODY, 24, 4.0))
    assert second.origin == (10, 20, 30)
    first, _, _, _ = on_one_grid(reference, density_of(BODY, 31, 4.0))
    centre = np.array(first.origin) + 4.0 * (np.array(first.shape) // 2)
    np.testing.assert_allclose(centre, np.array([10, 20, 30]) + 4.0 * 12)


def test_voxels_without_a_number_count_as_nothing_and_it_is_said() -> None:
    values = density_of(BODY, 24, 4.0).values.copy()
    values[0] = np.nan
    _, second, _, remarks = on_one_grid(density_of(BODY, 24, 4.0), Volume(values, 4.0))
    assert not np.isnan(second.values).any()
    assert "576 voxels of the density to align are NaN" in remarks[0]


@pytest.mark.parametrize("value", [0.0, 3.0, np.nan])
def test_a_density_without_content_is_refused(value: float) -> None:
    empty = Volume(np.full((12, 12, 12), value), 1.0)
    with pytest.raises(OrienteerError, match=r"same everywhere|has no values"):
        on_one_grid(empty, empty)


def test_an_intensity_is_refused() -> None:
    intensity = Volume(np.random.default_rng(1).random((9, 9, 9)), 0.01, "reciprocal")
    with pytest.raises(OrienteerError, match="is an intensity"):
        on_one_grid(intensity, intensity)


@pytest.mark.parametrize("shape", [(24, 24, 1), (3, 24, 24)])
def test_a_slice_is_no_volume(shape: tuple[int, int, int]) -> None:
    whole = density_of(BODY, 24, 4.0)
    part = Volume(whole.values[tuple(slice(0, n) for n in shape)], 4.0)
    for pair in ((whole, part), (part, whole), (part, part)):
        with pytest.raises(OrienteerError, match=f"is a slice of {' x '.join(map(str, shape))} voxels"):
            on_one_grid(*pair)
