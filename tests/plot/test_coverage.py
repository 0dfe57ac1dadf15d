"""The map of viewing directions: even coverage is flat, a bias shows, symmetry fills the sphere."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from orienteer.orientation.quaternion import canonical, compose, from_axis_angle, random_uniform, to_matrix
from orienteer.plot.coverage import bands_for, direction_density, draw_coverage, viewing_directions


def test_a_direction_is_the_beam_turned_back_into_the_particle() -> None:
    quaternions = random_uniform(20, 1)
    expected = np.einsum("nji,j->ni", to_matrix(quaternions), [0.0, 0.0, 1.0])
    np.testing.assert_allclose(viewing_directions(quaternions), expected, atol=1e-12)


def test_turning_the_particle_about_the_beam_shows_the_same_side() -> None:
    quaternions = random_uniform(20, 2)
    turned = compose(from_axis_angle([0, 0, 1], 73), quaternions)
    np.testing.assert_allclose(viewing_directions(turned), viewing_directions(quaternions), atol=1e-12)


def test_uniform_orientations_cover_evenly_and_every_cell_has_the_same_area() -> None:
    density = direction_density(viewing_directions(random_uniform(200_000, 3)), 8)
    assert density.shape == (8, 16)
    assert density.mean() == pytest.approx(1)
    assert np.abs(density - 1).max() < 0.12


def test_a_preferred_side_shows_in_its_cell() -> None:
    side = np.array([[0.0, 1.0, 0.05]]) / np.hypot(1, 0.05)
    density = direction_density(np.repeat(side, 10, axis=0), 4)
    band, cell = np.unravel_index(density.argmax(), density.shape)
    assert (band, cell) == (2, 6)
    assert density[2, 6] == density.size


def test_symmetry_spreads_a_fundamental_zone_over_the_sphere() -> None:
    everywhere = random_uniform(30_000, 4)
    zone = everywhere[canonical(everywhere)[:, 0] > 0.97]
    bare = direction_density(viewing_directions(zone), 6)
    spread = direction_density(viewing_directions(zone, "I"), 6)
    assert len(viewing_directions(zone, "I")) == 60 * len(zone)
    assert (bare == 0).mean() > 0.5
    assert spread.min() > 0.3


def test_few_frames_get_large_cells_and_none_get_a_map_too() -> None:
    assert bands_for(0) == 4
    assert bands_for(10_000) > bands_for(1000)
    assert bands_for(10**8) == 36
    for n in (0, 1, 500):
        figure = Figure()
        quaternions = np.concatenate([random_uniform(n, 5), np.full((1, 4), np.nan)])
        draw_coverage(figure, 111, quaternions)
        figure.canvas.draw()
