"""Symmetrised sums look alike from all equivalent sides."""

import numpy as np
import pytest

from orienteer.orientation.point_group import PointGroup, as_point_group
from orienteer.orientation.quaternion import to_matrix
from orienteer.reconstruction.model.relative_intensity import solve
from orienteer.reconstruction.model.symmetry import copies, symmetrise_sums
from orienteer.slicing.trilinear import slice_volume


@pytest.mark.parametrize("name", ["C1", "C4", "D3", "O", "I"])
def test_symmetrised_sums_are_seen_alike_from_all_equivalent_sides(name: str) -> None:
    n, group = 33, as_point_group(name)
    axis = np.arange(n) - n // 2
    x, y, z = np.meshgrid(axis, axis, axis, indexing="ij")
    smooth = np.exp(-((x - 4) ** 2 + (y - 2) ** 2 + (z - 5) ** 2) / 18.0)
    smooth += smooth[::-1, ::-1, ::-1]
    sums = symmetrise_sums(np.stack([smooth, 2 * smooth], axis=-1), group)
    sums *= copies(n, group)[..., None]
    points = np.random.default_rng(1).uniform(-6, 6, (50, 3)).astype(np.float32)
    seen = slice_volume(
        sums[..., 0].astype(np.float32), points, to_matrix(group.quaternions).astype(np.float32)
    )
    assert np.abs(seen - seen[0]).max() < 0.05 * seen.max()
    assert sums[..., 1] == pytest.approx(2 * sums[..., 0], rel=1e-4, abs=1e-9)
    assert sums[..., 0].sum() == pytest.approx(smooth.sum(), rel=0.02)


@pytest.mark.parametrize("name", ["C7", "D3", "O"])
def test_a_voxel_and_its_likenesses_start_with_one_prior_on_an_axis_and_off_it(name: str) -> None:
    """One on an axis has fewer equivalents: its own photons are not there several times."""
    n, group, prior = 21, PointGroup(name), 0.25
    photons, exposure = 0.2, 0.7
    found = solve(symmetrise_sums(np.tile([photons, exposure], (n, n, n, 1)), group), prior / group.order)
    for place, on_axis in (((10, 10, 16), {"C7": 7, "D3": 3, "O": 4}[name]), ((12, 15, 17), 1)):
        equivalents = group.order / on_axis
        wanted = (equivalents * photons + prior) / (equivalents * exposure + prior)
        assert found[place] == pytest.approx(wanted, rel=1e-5)


def test_rotations_that_leave_a_voxel_where_it_is_are_counted() -> None:
    of_axis = copies(31, PointGroup("C7"))
    assert of_axis[15, 15] == pytest.approx(7.0, abs=1e-4)
    assert (of_axis[0, 0], of_axis[15, 29, 3]) == (pytest.approx(1.0), pytest.approx(1.0))
    of_cube = copies(31, PointGroup("O"))
    # On two-fold, three-fold and four-fold axes, in the middle, and elsewhere.
    found = [of_cube[15, 25, 25], of_cube[25, 25, 25], of_cube[15, 15, 25], of_cube[15, 15, 15]]
    assert found == pytest.approx([2, 3, 4, 24], abs=1e-4)
    assert of_cube[18, 22, 27] == 1
