"""The amplitude on a grid by non-uniform FFT agrees with the direct sum to the stated error."""

import numpy as np
import pytest

from orienteer.errors import OrienteerError
from orienteer.particle.base import grid_spacing
from orienteer.particle.scatterers import element_table
from orienteer.particle.structure import Structure, blobs
from orienteer.particle.structure_on_grid import pick_profiles


def protein_like(rng: np.random.Generator, n: int, b_factor: np.ndarray | float) -> Structure:
    table = element_table(["C", "N", "O", "S", "Se"])
    kinds = rng.choice(5, n, p=[0.6, 0.18, 0.2, 0.015, 0.005])
    return Structure(rng.normal(size=(n, 3)) * 15, kinds, table, rng.uniform(0.5, 1, n), b_factor)


def relative_error(structure: Structure, axis: np.ndarray, energy: float | None, eps: float, rng) -> float:
    grid = structure.amplitude_on_grid(axis, energy, eps)
    assert grid.shape == (len(axis),) * 3
    index = rng.integers(0, len(axis), size=(400, 3))
    exact = structure.amplitude(axis[index], energy)
    return float(np.linalg.norm(grid[tuple(index.T)] - exact) / np.linalg.norm(exact))


@pytest.mark.parametrize("n", [24, 25])
@pytest.mark.parametrize("energy", [None, 12_700.0])
@pytest.mark.parametrize("eps", [1e-4, 1e-7, 1e-10])
def test_the_grid_agrees_with_the_direct_sum(n: int, energy: float | None, eps: float, rng) -> None:
    structure = protein_like(rng, 500, rng.uniform(2, 150, 500))
    axis = (np.arange(n) - n // 2) * 0.01
    assert relative_error(structure, axis, energy, eps, rng) < eps


def test_one_b_factor_needs_one_profile_per_element_and_many_need_few(rng) -> None:
    axis = (np.arange(40) - 20) * 0.007
    same = protein_like(rng, 300, 30.0)
    spread = protein_like(rng, 3000, rng.uniform(0, 200, 3000))
    for structure, most in ((same, 5), (spread, 14)):
        picked, shares = pick_profiles(structure, axis, structure.table.anomalous_terms(None), 1e-8)
        assert len(picked) <= most
        assert shares.shape == (len(picked), len(structure))


def test_thousands_of_blobs_of_different_widths_agree(rng) -> None:
    structure = blobs(rng.normal(size=(3000, 3)) * 30, rng.uniform(1, 9, 3000), rng.uniform(0.5, 25, 3000))
    assert relative_error(structure, (np.arange(25) - 12) * 0.004, None, 1e-7, rng) < 1e-7


def test_atoms_far_outside_the_period_of_the_grid_agree(rng) -> None:
    structure = protein_like(rng, 100, 0.0).translated([5000, -300, 777])
    assert relative_error(structure, (np.arange(20) - 10) * 0.01, None, 1e-7, rng) < 1e-6


def test_a_grid_in_many_batches_is_the_same(rng, monkeypatch: pytest.MonkeyPatch) -> None:
    structure = protein_like(rng, 200, rng.uniform(2, 80, 200))
    axis = (np.arange(16) - 8) * 0.01
    together = structure.amplitude_on_grid(axis, 8000.0)
    monkeypatch.setattr("orienteer.particle.structure_on_grid._BATCH_BYTES", 1)
    np.testing.assert_allclose(structure.amplitude_on_grid(axis, 8000.0), together, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("axis", [[0.0, 0.1, 0.2], [-0.1, 0.0, 0.3], [0.1, 0.0], [[0.0]], []])
def test_an_axis_that_is_not_uniform_and_centred_is_refused(axis: list) -> None:
    with pytest.raises(OrienteerError, match="axis"):
        grid_spacing(axis)
    with pytest.raises(OrienteerError, match="axis"):
        blobs([[0, 0, 0]], [1], 1).amplitude_on_grid(axis)


def test_scatterers_without_strength_scatter_nothing(rng) -> None:
    axis = np.arange(-3, 4) * 0.01
    assert not blobs([[0, 0, 0]], [0], 1).amplitude_on_grid(axis).any()
    # The only one with strength is not among the profiles that are looked at first.
    weights = np.zeros(3000)
    weights[1501] = 5
    structure = blobs(rng.normal(size=(3000, 3)) * 30, weights, 1.0)
    assert abs(structure.amplitude_on_grid(axis)[3, 3, 3]) == pytest.approx(5, rel=1e-5)
