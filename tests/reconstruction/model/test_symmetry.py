"""Symmetrised sums look alike from all equivalent sides."""

import numpy as np
import pytest

from orienteer.orientation.point_group import as_point_group
from orienteer.orientation.quaternion import to_matrix
from orienteer.reconstruction.model.symmetry import symmetrise_sums
from orienteer.slicing.trilinear import slice_volume


@pytest.mark.parametrize("name", ["C1", "C4", "D3", "O", "I"])
def test_symmetrised_sums_are_seen_alike_from_all_equivalent_sides(name: str) -> None:
    n, group = 33, as_point_group(name)
    axis = np.arange(n) - n // 2
    x, y, z = np.meshgrid(axis, axis, axis, indexing="ij")
    smooth = np.exp(-((x - 4) ** 2 + (y - 2) ** 2 + (z - 5) ** 2) / 18.0)
    smooth += smooth[::-1, ::-1, ::-1]
    sums = symmetrise_sums(np.stack([smooth, 2 * smooth], axis=-1), group)
    points = np.random.default_rng(1).uniform(-6, 6, (50, 3)).astype(np.float32)
    seen = slice_volume(
        sums[..., 0].astype(np.float32), points, to_matrix(group.quaternions).astype(np.float32)
    )
    assert np.abs(seen - seen[0]).max() < 0.05 * seen.max()
    assert sums[..., 1] == pytest.approx(2 * sums[..., 0], rel=1e-4, abs=1e-9)
    assert sums[..., 0].sum() == pytest.approx(smooth.sum(), rel=0.02)
