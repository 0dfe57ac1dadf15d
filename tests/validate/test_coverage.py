"""Where on the sphere frames have data: even coverage, missing sides, gaps of the detector."""

import numpy as np
import pytest

from orienteer.errors import OrienteerError
from orienteer.orientation.quaternion import compose, from_axis_angle, identity, random_uniform, rotate
from orienteer.validate.coverage import SphereCells, coverage

RADIUS, DIAMETER = 0.05, 200.0  # ten speckles from the centre to the edge


def pixels(n: int = 41, wavelength_A: float = 0.01) -> np.ndarray:
    axis = np.linspace(-RADIUS, RADIUS, n)
    x, y = (a.ravel() for a in np.meshgrid(axis, axis, indexing="ij"))
    return np.stack([x, y, -wavelength_A * (x**2 + y**2) / 2], axis=1)


@pytest.mark.parametrize("width_deg", [3.0, 11.0, 45.0])
def test_cells_cover_the_sphere_once_and_hold_their_centres(width_deg: float) -> None:
    cells = SphereCells(width_deg)
    assert cells.areas.sum() == pytest.approx(1)
    assert cells.areas.max() < 2.5 * cells.areas.min()
    assert np.array_equal(cells.index(cells.centres), np.arange(len(cells)))
    directions = np.random.default_rng(1).normal(size=(20000, 3))
    found = np.bincount(cells.index(directions), minlength=len(cells))
    expected = 20000 * cells.areas
    assert np.abs((found - expected) / np.sqrt(expected)).max() < 5


def test_frames_from_everywhere_cover_everything_evenly() -> None:
    found = coverage(random_uniform(4000, 1), pixels(), RADIUS, DIAMETER)
    assert found.empty_share == found.largest_gap_deg == 0
    assert (found.density * found.areas).sum() == pytest.approx(1)
    assert found.worst_density > 0.7
    assert found.density.std() < 0.25


def test_one_frame_covers_a_circle_about_its_beam() -> None:
    pose = from_axis_angle([1, 2, 0.5], 70)
    found = coverage(pose[None], pixels(), RADIUS, DIAMETER)
    beam = rotate(from_axis_angle([1, 2, 0.5], -70), np.array([0.0, 0.0, 1.0]))
    filled = found.directions[found.density > 0]
    assert np.degrees(np.arcsin(np.abs(filled @ beam))).max() < found.cell_deg
    assert 0.8 < found.empty_share < 0.95
    # The beam itself is the direction of which least is known.
    assert abs(found.worst_direction @ beam) > 0.99
    assert found.largest_gap_deg == pytest.approx(90, abs=1.5 * found.cell_deg)


def test_particles_that_lie_on_one_side_leave_a_known_direction_empty() -> None:
    """The beam always lies near the particle's x axis: directions near x are never on the circle."""
    rng = np.random.default_rng(2)
    onto_beam = from_axis_angle([0, 1, 0], -90)  # takes x to z
    tilts = [from_axis_angle(rng.normal(size=3), angle) for angle in rng.uniform(0, 15, 3000)]
    spins = [from_axis_angle([0, 0, 1], angle) for angle in rng.uniform(0, 360, 3000)]
    poses = compose(np.array(tilts), compose(np.array(spins), onto_beam))
    assert np.allclose(rotate(onto_beam, np.array([1.0, 0, 0])), [0, 0, 1])
    found = coverage(poses, pixels(), RADIUS, DIAMETER)
    assert found.worst_density == 0
    assert abs(found.worst_direction[0]) > 0.98
    assert found.largest_gap_deg == pytest.approx(75, abs=1.5 * found.cell_deg)
    # Directions within 75 degrees of x are missing: both caps of a sphere.
    assert found.empty_share == pytest.approx(1 - np.cos(np.radians(75)), abs=0.06)


def test_symmetry_fills_what_one_side_leaves_empty() -> None:
    poses = compose(from_axis_angle([1, 0, 0], 20), identity())[None]
    alone, cubic = (coverage(poses, pixels(), RADIUS, DIAMETER, group=group) for group in ("C1", "O"))
    assert cubic.empty_share < alone.empty_share - 0.2
    assert (cubic.density * cubic.areas).sum() == pytest.approx(1)


def test_bright_frames_count_more_and_those_of_weight_0_not_at_all() -> None:
    poses = random_uniform(2, 4)
    both = coverage(poses, pixels(), RADIUS, DIAMETER, weights=[1.0, 0.0])
    alone = coverage(poses[:1], pixels(), RADIUS, DIAMETER)
    assert np.allclose(both.density, alone.density)
    assert both.n_frames == 1
    brighter = coverage(poses, pixels(), RADIUS, DIAMETER, weights=[3.0, 1.0])
    only_first = (alone.density > 0) & (coverage(poses[1:], pixels(), RADIUS, DIAMETER).density == 0)
    assert np.allclose(brighter.density[only_first], 0.75 * alone.density[only_first])


def test_gaps_of_the_detector_are_gaps_in_the_data() -> None:
    half = pixels()
    half = half[half[:, 0] > abs(half[:, 1])]  # a quarter of the circle; with Friedel, half
    whole, part = (coverage(random_uniform(1, 6), q, RADIUS, DIAMETER) for q in (pixels(), half))
    assert np.sum(part.density > 0) == pytest.approx(np.sum(whole.density > 0) / 2, rel=0.15)


def test_a_sphere_without_pixels_is_refused() -> None:
    with pytest.raises(OrienteerError, match="no pixel at"):
        coverage(identity()[None], pixels(), 2 * RADIUS, DIAMETER)
