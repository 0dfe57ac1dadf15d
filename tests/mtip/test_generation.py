"""Merging of half sets, and how far phased densities may draw it."""

import numpy as np
import pytest

from orienteer.mtip.generation import HalfSums, Merged, drawn_to_phased, half_sums, merge_halves, sliceable
from orienteer.mtip.relative_grid import RelativeGrid
from orienteer.reconstruction.model.relative_intensity import half_correlation

EDGE = 25
GRID = RelativeGrid(EDGE, 1 / 400, 100.0, "cpu")


def even(cube: np.ndarray) -> np.ndarray:
    return (cube + cube[::-1, ::-1, ::-1]) / 2


def truth(seed: int = 0) -> np.ndarray:
    """Speckles of full contrast about 1."""
    z = np.random.default_rng(seed).normal(size=(GRID.n,) * 3) * GRID.spread
    z = even(z) * np.sqrt(2 / (GRID.spread**2).sum())
    return np.asarray(z + GRID.round_start())


def half_of(
    z: np.ndarray,
    photons_per_voxel: float,
    seed: int,
    before: np.ndarray | None = None,
    has_noise: bool = True,
) -> HalfSums:
    """What frames of an autocorrelation would have left behind, with the noise of so many photons."""
    rng = np.random.default_rng(seed)
    J = GRID.intensity(z)
    exposure = even(rng.uniform(0.5, 1.5, J.shape)) * photons_per_voxel
    noise = even(rng.normal(size=J.shape)) * np.sqrt(2 * exposure)
    model = GRID.round_start() if before is None else before
    excess = exposure * (J - GRID.intensity(model)) + has_noise * noise
    # An excess comes from triangles, which blur it.
    blurred = GRID.intensity(GRID.autocorrelation(1 + excess) / GRID.sharpening) - 1
    return half_sums(GRID, model, blurred, exposure, 0.03)


def correlation(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return half_correlation(GRID.intensity(a), GRID.intensity(b), np.ones((EDGE,) * 3))[2:12]


def settled(z: np.ndarray, photons: float, n: int = 4) -> Merged:
    """Generations at known poses."""
    before: list[np.ndarray | None] = [None, None]
    for _ in range(n):
        halves = [half_of(z, photons, seed, model) for seed, model in zip((1, 2), before, strict=True)]
        merged = merge_halves(GRID, halves, 1e-4)
        before = list(merged.autocorrelations)
    return merged


def test_many_photons_find_the_autocorrelation_and_little_regularisation() -> None:
    z = truth()
    bright, dim = settled(z, 100.0), settled(z, 0.1)
    assert correlation(bright.autocorrelations[0], z).min() > 0.98
    assert dim.regularisation >= bright.regularisation
    assert (
        0.3
        < correlation(dim.autocorrelations[0], z).mean()
        < correlation(bright.autocorrelations[0], z).mean()
    )


def test_the_regularisation_is_about_the_one_that_theory_wants() -> None:
    """Speckles of full contrast and the noise of photons: 1, by its definition."""
    assert 0.2 < settled(truth(), 0.3).regularisation < 5


def test_a_right_model_without_noise_stays_put() -> None:
    z = truth() * GRID.support
    merged = merge_halves(GRID, [half_of(z, 50.0, seed, z, has_noise=False) for seed in (1, 2)], 1e-3)
    assert merged.regularisation == 0.1  # the least that is tried
    contrast = np.linalg.norm(z - GRID.round_start())
    assert np.linalg.norm(merged.autocorrelations[0] - z) < 0.03 * contrast


@pytest.mark.parametrize("n_halves", [1, 2])
def test_without_frames_in_a_half_models_stay_as_they_are(n_halves: int) -> None:
    """All frames of a half may show junk, or another state than the one that is tried."""
    z, nothing = truth(), np.zeros((EDGE,) * 3)
    halves = [half_sums(GRID, z, nothing, nothing, 0.03), half_of(z, 1e3, 2)]
    merged = merge_halves(GRID, halves[:n_halves], 1e-5)
    for before, after in zip(halves, merged.autocorrelations, strict=False):
        assert np.array_equal(after, before.before)
    assert np.isfinite(sliceable(GRID, [merged], np.ones((EDGE,) * 3)).models).all()


def test_one_set_of_frames_is_merged_at_the_corner_of_the_curve() -> None:
    z = truth()
    merged = merge_halves(GRID, [half_of(z, 10.0, 1)], 1e-4)
    assert merged.autocorrelations.shape == (1, *z.shape)
    assert correlation(merged.autocorrelations[0], z).min() > 0.9


@pytest.fixture(scope="module")
def dim() -> tuple[np.ndarray, Merged]:
    z = truth()
    return z, settled(z, 0.1)


def test_a_better_density_draws_and_of_several_the_best(dim: tuple[np.ndarray, Merged]) -> None:
    z, merged = dim
    noise = truth(5) - GRID.round_start()
    phased = [np.stack([truth(7), z + 0.3 * noise]), np.stack([z + 0.3 * noise, truth(8)])]
    drawn = drawn_to_phased(GRID, merged, phased)
    for half in range(2):
        before = correlation(merged.autocorrelations[half], z).mean()
        assert correlation(drawn.autocorrelations[half], z).mean() > before + 0.05


def test_a_wrong_density_draws_nothing(dim: tuple[np.ndarray, Merged]) -> None:
    z, merged = dim
    drawn = drawn_to_phased(GRID, merged, [np.stack([truth(7)]), np.stack([truth(8)])])
    for half in range(2):
        before = correlation(merged.autocorrelations[half], z).mean()
        assert correlation(drawn.autocorrelations[half], z).mean() > before - 0.02


def test_models_are_sharpened_for_slices_and_results_are_not(dim: tuple[np.ndarray, Merged]) -> None:
    _, merged = dim
    found = sliceable(GRID, [merged], np.ones((EDGE,) * 3))
    plain = [GRID.intensity(z) for z in merged.autocorrelations]
    assert found.models.shape == (2, 1, EDGE, EDGE, EDGE)
    assert found.models.dtype == np.float32
    assert np.allclose(found.full()[0], np.maximum((plain[0] + plain[1]) / 2, 0.02), atol=1e-5)
    sharp = GRID.intensity(merged.autocorrelations[0] * GRID.sharpening)
    assert np.allclose(found.models[0, 0], np.maximum(sharp, 0.02), atol=1e-5)
    assert np.allclose(found.half_correlation[2:10], half_correlation(*plain, merged.exposure)[2:10])


def test_halves_that_share_nothing_but_rings_do_not_agree() -> None:
    """Within a shell of one voxel a steep ring rises and falls, in both halves alike."""
    axis = (np.arange(EDGE) - EDGE // 2) * GRID.voxel_inv_A
    length = np.sqrt(axis[:, None, None] ** 2 + axis[:, None] ** 2 + axis**2)
    rings = 1 + 0.8 * np.cos(2 * np.pi * length * 60.0)
    # Each half has its own faint speckles, and the same rings.
    speckles = [0.9 + 0.1 * GRID.intensity(truth(seed)) for seed in (1, 2)]
    halves = [GRID.autocorrelation(rings * each) for each in speckles]
    half = half_of(truth(), 1.0, 1)
    merged = Merged(np.stack(halves), (half, half), 1.0)
    told = [sliceable(GRID, [merged], flat).half_correlation[3:11].mean() for flat in (rings, 0 * rings + 1)]
    assert abs(told[0]) < 0.2
    assert told[1] > 0.4
