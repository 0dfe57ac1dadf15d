"""Phased densities are compared with all that is known of them: edge, support, symmetry, turn."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from orienteer.compare.criteria import half_bit_curve
from orienteer.compare.mask import filled_share
from orienteer.validate.densities import common_order, compare_phasings
from orienteer.validate.intensities import IntensityAgreement
from orienteer.volume.volume import Volume

N, VOXEL_A = 24, 5.0
UNTURNED = np.array([1.0, 0, 0, 0])


def body(width: float = 2.0) -> np.ndarray:
    axis = np.arange(N) - N // 2
    x, y, z = np.meshgrid(axis, axis, axis, indexing="ij")
    places = [((4, 0, 1), 1.0), ((0, 4, -2), 0.8), ((-2, -2, 4), 1.2), ((-4, 2, -3), 0.9), ((2, -4, -3), 0.7)]
    return sum(
        w * np.exp(-((x - a) ** 2 + (y - b) ** 2 + (z - c) ** 2) / width**2) for (a, b, c), w in places
    )


def phased(noise: float, seed: int = 0, symmetry: str = "C1", edge_A: float = 0.0) -> Any:
    """A density like one that was phased, with white noise inside of its support."""
    support = body(3.0) > 0.1
    values = (body() + noise * np.random.default_rng(seed).normal(size=(N, N, N))) * support
    return SimpleNamespace(
        density=Volume(values, VOXEL_A), support=Volume(support.astype(float), VOXEL_A),
        edge_A=edge_A or None, settings={"symmetry": symmetry},
    )  # fmt: skip


def intensities(order: int = 1) -> IntensityAgreement:
    return IntensityAgreement(UNTURNED, np.arange(12) / 120, np.full(12, 0.9), 60.0, order)


@pytest.mark.parametrize(
    ("of_runs", "first", "second", "order"),
    [(1, "C1", "C1", 1), (1, "I", "I", 60), (60, "I", "I", 60), (60, "C1", "C1", 60), (1, "D2", "C1", 1)],
)
def test_the_half_bit_curve_knows_a_symmetry_that_was_given_to_the_phasing_alone(
    of_runs: int, first: str, second: str, order: int
) -> None:
    """of_runs : order of the symmetry that both intensities have; few voxels are then independent, too."""
    pair = phased(0.1, 1, first), phased(0.1, 2, second)
    maps = compare_phasings(*pair, intensities(of_runs), 0.1, n_draws=1)
    filled = filled_share(maps.mask.values)
    expected = half_bit_curve(maps.curves.corrected.n_voxels, filled, order)
    np.testing.assert_allclose(maps.half_bit, expected)


def test_densities_of_unlike_symmetries_have_none_in_common() -> None:
    assert common_order(phased(0, symmetry="D2")) == 4
    assert common_order(phased(0, symmetry="D2"), phased(0, symmetry="T")) == 1
