"""The phase retrieval transfer function is 1 where phases repeat, and only there."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from orienteer.errors import OrienteerError
from orienteer.phase.alignment import shifted
from orienteer.phase.ensemble import average_cluster
from orienteer.phase.half_grid import density_of, half_grid_shells, transform_of
from orienteer.phase.prtf import THRESHOLD, Prtf, prtf

Blobs = Callable[..., NDArray[np.float64]]
Everywhere = Callable[[int], NDArray[np.bool_]]


@pytest.mark.parametrize("strength", [0.2, 5.0])
def test_it_is_the_modulus_of_the_mean_over_the_larger_amplitude_in_each_shell(strength: float) -> None:
    n, background = 9, 2.0
    rng = np.random.default_rng(0)
    transforms = transform_of(strength * rng.normal(size=(4, n, n, n)))
    given = np.abs(np.fft.fftn(rng.normal(size=(n, n, n)))) + 2
    measured = np.array(half_grid_shells(n) != 2)
    found = prtf(transforms, given[:, :, : n // 2 + 1], measured, 0.01, background)
    whole = np.fft.fftn(density_of(transforms), axes=(1, 2, 3))
    f = np.round(np.fft.fftfreq(n, 1 / n))
    shell = np.floor(np.sqrt(f[:, None, None] ** 2 + f[:, None] ** 2 + f**2) + 0.5)
    shells = [0, 1, 3, 4]
    kept = [np.abs(whole.mean(axis=0))[shell == s].sum() for s in shells]
    measured_sums = [np.sqrt(given**2 - background)[shell == s].sum() for s in shells]
    own_sums = [np.abs(whole).mean(axis=0)[shell == s].sum() for s in shells]
    assert (np.array(own_sums) > measured_sums).all() == (strength > 1)
    np.testing.assert_allclose(found.values, np.divide(kept, np.maximum(measured_sums, own_sums)), rtol=1e-10)
    np.testing.assert_allclose(found.q_inv_A, 0.01 * np.array(shells))
    assert found.n_voxels[1] == 9  # 18 voxels at distances that round to 1


def test_a_density_that_repeats_but_does_not_fit_is_not_called_repeated(everywhere: Everywhere) -> None:
    """Over the mean modulus of the starts it would be 1, however faint they are."""
    one = transform_of(np.random.default_rng(4).normal(size=(12, 12, 12)))
    found = prtf(np.stack([0.3 * one] * 20), np.abs(one), everywhere(12), 0.01)
    np.testing.assert_allclose(found.values, 0.3)
    assert found.resolution_A is None


def test_starts_that_are_stronger_than_the_data_do_not_repeat_better(everywhere: Everywhere) -> None:
    """A wrong density may be strong where the data are faint, as at a zero of the form factor."""
    one = transform_of(np.random.default_rng(4).normal(size=(12, 12, 12)))
    for strength in (1.0, 1.8, 30.0):
        found = prtf(np.stack([strength * one] * 20), np.abs(one), everywhere(12), 0.01)
        np.testing.assert_allclose(found.values, 1.0)
    turns = np.exp(2j * np.pi * np.random.default_rng(5).random((20, *one.shape)))
    found = prtf(30.0 * one * turns, np.abs(one), everywhere(12), 0.01)
    assert found.values[2:].mean() == pytest.approx(found.floor, rel=0.1)
    assert found.resolution_A is None or found.resolution_A > 40


def test_phases_at_random_fall_to_the_floor(everywhere: Everywhere) -> None:
    n, n_starts = 16, 25
    rng = np.random.default_rng(1)
    one = transform_of(rng.normal(size=(n, n, n)))
    turns = np.exp(2j * np.pi * rng.random((n_starts, *one.shape)))
    found = prtf(one * turns, np.abs(one), everywhere(n), 0.01)
    assert found.values[3:].mean() == pytest.approx(found.floor, rel=0.05)
    assert found.resolution_A is None or found.resolution_A > 40


def test_starts_repeat_only_if_they_are_aligned(blobs: Blobs, everywhere: Everywhere) -> None:
    n = 24
    rng = np.random.default_rng(2)
    truth = transform_of(blobs(n))
    starts = []
    for _ in range(12):
        start = np.conj(truth) if rng.random() < 0.5 else truth
        starts.append(shifted(start, rng.uniform(-8, 8, 3)) * rng.choice([-1, 1]))
    transforms = np.stack(starts)
    densities = density_of(transforms)
    average = average_cluster(densities, densities > 0.1, everywhere(n), range(12))
    within = np.array(half_grid_shells(n) < 8)  # beyond, the blobs have nothing but rounding errors
    assert prtf(average.transforms, np.abs(truth), within, 0.01).values.min() > 0.98
    assert prtf(transforms, np.abs(truth), within, 0.01).values[2:].max() < 0.7


@pytest.mark.parametrize(
    ("values", "n_starts", "resolution_A", "words"),
    [
        ([1.0, 0.8, 0.6], 20, 1 / 0.03, "the edge of the data, 33.3 A"),
        ([1.0, THRESHOLD + 0.1, THRESHOLD - 0.1], 20, 1 / 0.025, "repeat to 40 A"),
        ([0.2, 0.8, 0.9], 20, None, "do not repeat from start"),
        ([1.0, 0.9, 0.1], 3, None, "too few"),  # random phases of three starts would reach 0.5
        ([1.0, 1.0, 1.0], 1, None, "Only one start"),
    ],
)
def test_the_resolution_is_where_it_first_falls(
    values: list[float], n_starts: int, resolution_A: float | None, words: str
) -> None:
    curve = Prtf(np.array([0.01, 0.02, 0.03]), np.array(values), np.array([9, 30, 60]), n_starts)
    assert curve.resolution_A == (None if resolution_A is None else pytest.approx(resolution_A))
    assert words in curve.words()


def test_no_starts_are_refused(everywhere: Everywhere) -> None:
    with pytest.raises(OrienteerError, match="no starts"):
        prtf(np.zeros((0, 8, 8, 5), complex), np.ones((8, 8, 5)), everywhere(8), 0.01)


@pytest.mark.gpu
def test_the_gpu_finds_the_same(everywhere: Everywhere) -> None:
    import cupy

    transforms = transform_of(np.random.default_rng(3).normal(size=(4, 12, 12, 12)))
    given = np.abs(transforms[0])
    expected = prtf(transforms, given, everywhere(12), 0.01)
    found = prtf(*(cupy.asarray(part) for part in (transforms, given, everywhere(12))), 0.01)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-6)
