"""Merged sums become an intensity relative to its radial mean."""

import numpy as np
import pytest

from orienteer.reconstruction.model.relative_intensity import (
    both_friedel,
    corrected,
    half_correlation,
    inverse_start,
    prior_photons,
    random_start,
    resized,
    shell_covariances,
    shell_means,
    shell_moments,
    shells_of,
    solve,
)
from orienteer.volume.friedel import friedel_symmetrise


def test_an_empty_voxel_is_the_mean_and_a_bright_one_its_ratio() -> None:
    sums = np.zeros((3, 3, 3, 2))
    sums[1, 1, 1] = (3000.0, 1500.0)
    values = solve(sums, prior_photons(8.0))
    assert values[0, 0, 0] == 1.0
    assert values[1, 1, 1] == pytest.approx(2.0, rel=1e-3)


def test_the_prior_of_known_poses_leaves_faint_voxels_their_contrast_and_that_of_spread_ones_does_not() -> (
    None
):
    """A tenth of a photon for each voxel is some for each speckle."""
    sums = np.full((3, 3, 3, 2), 0.1)
    sums[..., 0] *= 2.0  # the speckle is twice as bright as its shell
    known, spread = (solve(sums, prior_photons(perplexity))[0, 0, 0] for perplexity in (8.0, 1000.0))
    assert known > 1.8
    assert spread < 1.3


@pytest.mark.parametrize("prior", [0.02, 0.25])
def test_a_model_is_corrected_to_what_would_be_solved_for(prior: float) -> None:
    rng = np.random.default_rng(8)
    model, expected = rng.uniform(0.5, 2, (4, 4, 4)).astype(np.float32), rng.uniform(0.1, 5, (4, 4, 4))
    photons = rng.uniform(0, 8, (4, 4, 4))
    excess = np.stack([photons - model * expected, expected], axis=-1)
    wanted = solve(np.stack([photons, expected], axis=-1), prior)
    np.testing.assert_allclose(corrected(model, excess, prior), wanted, rtol=1e-5)


@pytest.mark.parametrize("n", [8, 9])
def test_sums_of_both_sides_are_the_same(n: int) -> None:
    sums = np.random.default_rng(1).uniform(size=(n, n, n, 2))
    both = both_friedel(sums)
    wanted = np.stack([friedel_symmetrise(sums[..., part]) for part in (0, 1)], axis=-1)
    assert np.array_equal(both, wanted)
    inside = both[1 - n % 2 :, 1 - n % 2 :, 1 - n % 2 :]
    assert np.array_equal(inside, inside[::-1, ::-1, ::-1])


def test_halves_correlate_as_their_noise_says() -> None:
    rng = np.random.default_rng(2)
    n = 41
    signal, exposure = rng.normal(size=(n, n, n)), np.full((n, n, n), 5.0)
    halves = [10 + signal + rng.normal(0, 1.0, (n, n, n)) for _ in range(2)]  # half signal, half noise
    correlation = half_correlation(halves[0], halves[1], exposure)
    assert correlation[8:20] == pytest.approx(np.full(12, 0.5), abs=0.1)
    assert half_correlation(halves[0], halves[0], exposure)[5] == pytest.approx(1.0)


@pytest.mark.parametrize(("old", "new"), [(9, 15), (15, 9), (9, 9)])
def test_a_cube_keeps_its_centre_when_it_grows(old: int, new: int) -> None:
    values = np.random.default_rng(4).uniform(2, 3, (old, old, old)).astype(np.float32)
    out = resized(values, new)
    assert out.shape == (new,) * 3
    assert out[new // 2, new // 2, new // 2] == values[old // 2, old // 2, old // 2]
    assert out[0, 0, 0] == (values[3, 3, 3] if new < old else values[0, 0, 0] if new == old else 1.0)


def test_a_random_start_looks_like_an_intensity() -> None:
    start = random_start(21, seed=1, voxels_per_speckle=4.0)
    assert start.min() > 0
    assert np.array_equal(start, start[::-1, ::-1, ::-1])  # W(-q) = W(q)
    neighbours = np.corrcoef(start[:-1].ravel(), start[1:].ravel())[0, 1]
    assert 0.7 < neighbours < 0.95
    assert np.array_equal(start, random_start(21, seed=1, voxels_per_speckle=4.0))


def test_an_inverse_start_is_as_much_lower_as_the_model_is_higher() -> None:
    model = random_start(21, seed=2, voxels_per_speckle=4.0, contrast=0.2)
    inverse, shell = inverse_start(model), shells_of(model) == 6
    mean = model[shell].mean()
    np.testing.assert_allclose(inverse[shell] - mean, mean - model[shell], rtol=1e-4, atol=1e-5)
    assert inverse.dtype == np.float32
    assert np.array_equal(inverse, inverse[::-1, ::-1, ::-1])  # W(-q) = W(q), to the bit
    model[shell] *= np.where(np.arange(shell.sum()) == 0, 500, 1)  # a voxel far above its shell
    assert inverse_start(model)[shell].min() == pytest.approx(0.1 * model[shell].mean(), rel=1e-5)


def test_moments_of_shells_are_plain_sums() -> None:
    draw = np.random.default_rng(3)
    a, b, w = (draw.random((9, 9, 9)).astype(np.float32) for _ in range(3))
    found = shell_moments([a, b], w)
    a, b, w = (x.astype(np.float64) for x in (a, b, w))
    for shell in range(len(found)):
        here = shells_of(a) == shell
        terms = (w, w * a, w * b, w * a * b, w * a * a, w * b * b)
        assert found[shell] == pytest.approx([term[here].sum() for term in terms], rel=1e-12)
        assert shell_moments([a], w)[shell] == pytest.approx(found[shell, :2], rel=1e-6)
        assert shell_moments([], w)[shell, 0] == pytest.approx(found[shell, 0], rel=1e-6)
        assert shell_means(a, w)[here] == pytest.approx(np.average(a[here], weights=w[here]), rel=1e-6)
        covariance = (
            np.cov(a[here], b[here], aweights=w[here], ddof=0) if here.sum() > 1 else np.zeros((2, 2))
        )
        cross, square_a, square_b = (curve[shell] for curve in shell_covariances(a, b, w))
        assert [cross, square_a, square_b] == pytest.approx(covariance[[0, 0, 1], [1, 0, 1]], abs=1e-9)
