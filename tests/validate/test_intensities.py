"""Two intensities on grids of their own, turned onto each other."""

from dataclasses import replace

import numpy as np
import pytest

from orienteer.compare.turning import rotate_volume
from orienteer.orientation.distance import angular_distance_deg
from orienteer.orientation.quaternion import from_axis_angle
from orienteer.particle.named_bodies import virus
from orienteer.validate.intensities import IntensityAgreement, compare_intensities, look_alikes, worse_of
from orienteer.volume.volume import Volume


def smooth(n: int, voxel: float, edge: float = 1.0) -> Volume:
    axis = (np.arange(n) - n // 2) * voxel
    x, y, z = np.meshgrid(axis, axis, axis, indexing="ij")
    values = 2 + np.cos(9 * x) * np.cos(7 * y) + np.cos(6 * z + 2 * x) + 0.3 * np.cos(11 * y - 4 * z)
    values[x**2 + y**2 + z**2 > edge**2] = np.nan
    return Volume(values, voxel, "reciprocal")


def agreement(curve: list[float], diameter_A: float = 100.0, order: int = 1) -> IntensityAgreement:
    """A curve over shells of one speckle, 0.01 1/A each, for a particle of 100 A."""
    return IntensityAgreement(np.zeros(4), 0.01 * np.arange(len(curve)), np.array(curve), diameter_A, order)


def test_a_turn_between_intensities_of_other_voxels_is_found() -> None:
    turn = from_axis_angle([1, 3, 2], 40)
    first = smooth(41, 0.05)
    first = first.with_values(rotate_volume(first.values, turn))
    found = compare_intensities(first, smooth(37, 0.056), 10.0)
    assert angular_distance_deg(found.quaternion, turn) < 1
    assert np.nanmin(found.correlation[3:16]) > 0.9
    assert found.resolution_A == pytest.approx(1.0, rel=0.15)


def test_the_resolution_is_where_the_correlation_falls_below_a_half() -> None:
    nan = np.nan
    # Speckles are three shells wide: what lies inside of the first says nothing.
    assert agreement([nan, 0.1, 0.3, 0.9, 0.7, 0.3, 0.2, 0.4], 33.0).resolution_A == pytest.approx(1 / 0.045)
    assert agreement([nan, 0.1, 0.3, 0.9, 0.7, 0.3, 0.8, 0.9], 33.0).resolution_A == pytest.approx(1 / 0.07)
    assert agreement([nan, 0, 0, 0, 0, 0]).resolution_A is None
    assert agreement([nan, 1, 1, 1, 1, 1, nan]).resolution_A == pytest.approx(1 / 0.05)
    assert agreement([nan] * 4).resolution_A is None


def test_a_hole_in_the_centre_is_no_reason_to_see_no_agreement() -> None:
    nan = np.nan
    assert agreement([nan, nan, nan, 0.6, 0.4, 0.9, 0.9, 0.1]).resolution_A == pytest.approx(1 / 0.065)


def test_of_several_agreements_the_one_that_reaches_least_counts() -> None:
    far, near, none = agreement([1.0] * 9), agreement([1, 1, 1, 1, 0.6, 0.1]), agreement([0.0] * 9)
    assert worse_of([far, near]) is near
    assert worse_of([near, none, far]) is none


def unrelated_curve(speckles: float, order: int, draw: np.random.Generator) -> IntensityAgreement:
    """Correlations of unrelated intensities of a particle of 100 A, as the best of many turns has them."""
    step = 1 / 3
    s = np.arange(0, speckles + step, step)
    scatter = 1 / np.sqrt(np.maximum(np.pi * s**2 / order, 0.5))
    n_turns = max(1, round(8 * np.pi**2 * speckles**3 / order**2))
    # Neighbours within a speckle are alike.
    noise = draw.normal(size=(n_turns, len(s) + 2))
    noise = (noise[:, :-2] + noise[:, 1:-1] + noise[:, 2:]) / 3**0.5
    curves = np.tanh(scatter * noise)
    best = curves[np.argmax((curves * s**2).sum(axis=1))]
    return IntensityAgreement(np.zeros(4), s / 100.0, best, 100.0, order)


@pytest.mark.parametrize(("speckles", "order"), [(4.0, 1), (5.0, 4), (9.0, 60)])
def test_what_turning_alone_brings_about_is_no_agreement(speckles: float, order: int) -> None:
    draw = np.random.default_rng(1)
    passed = [unrelated_curve(speckles, order, draw).agrees_to_A for _ in range(40)]
    assert sum(one is not None for one in passed) <= 1


def test_a_good_agreement_is_seen_whatever_the_symmetry() -> None:
    for speckles, order in ((4.0, 1), (4.0, 4), (9.0, 60)):
        s = np.arange(0, speckles + 0.01, 1 / 3)
        same = IntensityAgreement(np.zeros(4), s / 100, np.full(len(s), 0.9), 100.0, order)
        assert same.agrees_to_A == pytest.approx(100 / speckles)
    # Up to four speckles from the centre an icosahedral particle has no more than one number to show.
    few = IntensityAgreement(np.zeros(4), s[:13] / 100, np.full(13, 0.97), 100.0)
    assert few.agrees_to_A is not None
    assert replace(few, order=60).agrees_to_A is None


def test_agreement_ends_where_speckles_do() -> None:
    curve = [np.nan, 0.9, 0.9, 0.9, 0.9, 0.5, 0.1, 0.1, 0.0, 0.0]
    assert agreement(curve).agrees_to_A == pytest.approx(1 / 0.0589, rel=0.02)
    # One shell that dips is no end.
    curve[3] = 0.0
    assert agreement(curve).agrees_to_A == pytest.approx(1 / 0.0589, rel=0.02)


def test_shells_that_reach_beyond_the_outermost_pixel_are_left_out() -> None:
    found = compare_intensities(smooth(21, 0.1), smooth(21, 0.1), 10.0, edge_inv_A=0.71)
    assert np.isfinite(found.correlation[6])
    assert np.isnan(found.correlation[7:]).all()
    assert found.resolution_A == pytest.approx(1 / 0.6)


def test_a_symmetry_that_nobody_gave_is_seen_in_noisy_halves() -> None:
    body, n, voxel = virus(300), 41, 1 / 1200
    axis = (np.arange(n) - n // 2) * voxel
    truth = np.abs(body.amplitude_on_grid(axis)) ** 2
    draw = np.random.default_rng(1)

    def half() -> Volume:
        return Volume(truth * (1 + 0.3 * draw.normal(size=truth.shape)), voxel, "reciprocal")

    first, second = half(), half()
    found = look_alikes(first, compare_intensities(first, second, 300.0))
    assert len(found) == 60
    assert angular_distance_deg(found, np.tile([1.0, 0, 0, 0], (60, 1)), "I").max() < 5


def test_halves_that_agree_on_nothing_look_alike_nowhere() -> None:
    draw = np.random.default_rng(1)
    noise = [Volume(draw.random((21, 21, 21)), 0.001, "reciprocal") for _ in range(2)]
    np.testing.assert_array_equal(look_alikes(noise[0], agreement([0.1] * 11)), [[1, 0, 0, 0]])
