"""Grids by name, and the grid that a resolution and a particle size need."""

import numpy as np
import pytest

from orienteer.errors import OrienteerError
from orienteer.orientation.grids import KINDS, grid_for_resolution, make_grid
from orienteer.orientation.six_hundred_cell import covering_bound_deg


@pytest.mark.parametrize("n_speckles", [1, 2, 5, 8])
@pytest.mark.parametrize("kind", KINDS)
def test_the_grid_is_as_fine_as_the_speckles_at_the_edge(kind: str, n_speckles: int) -> None:
    grid = grid_for_resolution(resolution_A=20, diameter_A=20 * n_speckles, kind=kind)
    assert grid.kind == kind
    assert grid.covering_radius_deg < 1.05 * covering_bound_deg(n_speckles)
    # One speckle spans about 1/n rad of turn at the edge.
    assert grid.covering_radius_deg < np.degrees(1 / n_speckles)


def test_the_600_cell_takes_as_many_divisions_as_there_are_speckles() -> None:
    assert grid_for_resolution(12, 100).level == 9
    assert grid_for_resolution(12, 96).level == 8
    assert grid_for_resolution(0.3, 0.9).level == 3  # a ratio that floating point puts just above 3
    assert grid_for_resolution(500, 100).level == 1
    assert len(grid_for_resolution(10, 100, group="I")) == 835


@pytest.mark.parametrize(("resolution_A", "diameter_A"), [(0, 100), (-1, 100), (10, np.nan), (10, np.inf)])
def test_lengths_must_be_positive(resolution_A: float, diameter_A: float) -> None:
    with pytest.raises(OrienteerError, match="positive length in Å"):
        grid_for_resolution(resolution_A, diameter_A)


@pytest.mark.parametrize("kind", KINDS)
def test_a_grid_too_large_for_any_machine_is_refused_before_it_is_made(kind: str) -> None:
    with pytest.raises(OrienteerError, match="lower resolution"):
        grid_for_resolution(1e-300, 1e300, kind=kind)


def test_an_unknown_kind_says_what_exists() -> None:
    for make in (lambda: make_grid("healpix", 3), lambda: grid_for_resolution(10, 100, kind="healpix")):
        with pytest.raises(OrienteerError, match="600-cell, hopf, super-fibonacci"):
            make()
