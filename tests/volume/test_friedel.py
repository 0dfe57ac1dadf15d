"""Friedel symmetry holds about the centre voxel n // 2, for even and odd boxes."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orienteer.particle.structure import blobs
from orienteer.volume.friedel import friedel_completed, friedel_symmetrise
from orienteer.volume.volume import Volume


@given(st.tuples(*[st.integers(1, 7)] * 3), st.integers(0, 2**32))
def test_each_voxel_equals_its_mate_and_the_sum_is_kept(shape: tuple[int, int, int], seed: int) -> None:
    values = np.random.default_rng(seed).random(shape)
    result = friedel_symmetrise(values)
    centre = [n // 2 for n in shape]
    for place in itertools.product(*(range(n) for n in shape)):
        mate = tuple(2 * c - i for c, i in zip(centre, place, strict=True))
        if all(0 <= i < n for i, n in zip(mate, shape, strict=True)):
            assert result[place] == pytest.approx((values[place] + values[mate]) / 2)
        else:
            assert result[place] == values[place]
    assert result.sum() == pytest.approx(values.sum())


@pytest.mark.parametrize("n", [8, 9])
def test_the_intensity_of_a_real_object_is_left_alone(n: int) -> None:
    axis = (np.arange(n) - n // 2) / 100
    points = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1)
    three = blobs([[0, 0, 0], [20, 3, -5], [-4, 15, 9]], [1.0, 2.0, 3.0], 3.0)
    intensity = np.abs(three.amplitude(points)) ** 2
    volume = Volume(intensity, voxel_size=0.01, space="reciprocal")
    np.testing.assert_allclose(volume.axes()[0], axis, atol=1e-15)
    np.testing.assert_allclose(friedel_symmetrise(intensity), intensity, rtol=1e-9)
    # One voxel off the centre it would not be: the test above can fail.
    assert not np.allclose(friedel_symmetrise(np.roll(intensity, 1, 0)), np.roll(intensity, 1, 0), rtol=1e-2)


def test_models_are_symmetrised_one_by_one() -> None:
    values = np.random.default_rng(1).random((2, 3, 4, 5))
    np.testing.assert_array_equal(friedel_symmetrise(values)[1], friedel_symmetrise(values[1]))


@given(st.integers(1, 6), st.integers(0, 2**32))
def test_what_either_of_two_mates_tells_is_known_on_both_sides(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    cube = np.where(rng.random((n,) * 3) < 0.4, np.nan, rng.random((n,) * 3))
    found = friedel_completed(cube)
    odd, centre = n + 1 - n % 2, n // 2
    assert found.shape == (odd,) * 3
    for place in itertools.product(range(odd), repeat=3):
        mate = tuple(2 * centre - i for i in place)
        told = [cube[v] for v in (place, mate) if max(v) < n and np.isfinite(cube[v])]
        np.testing.assert_allclose(found[place], np.mean(told) if told else np.nan)
