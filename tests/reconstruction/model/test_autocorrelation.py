"""The Wiener filter keeps what halves agree about, by shell and by distance in the autocorrelation."""

import numpy as np
import pytest
from numpy.typing import NDArray

from orienteer.compare.shells import shell_index
from orienteer.compare.symmetrising import mean_over_group
from orienteer.orientation.point_group import as_point_group
from orienteer.reconstruction.model import autocorrelation
from orienteer.reconstruction.model.autocorrelation import WienerFilter, _common_power, _few_factors
from orienteer.reconstruction.model.cube_transform import halved, transformed
from orienteer.reconstruction.model.relative_intensity import (
    half_correlation,
    is_half,
    n_shells_of,
    shell_covariances,
    shell_means,
    shells_of,
    smoothed,
)
from orienteer.volume.friedel import friedel_symmetrise

_N = 41


def _speckles(reach: float, seed: int) -> NDArray[np.float64]:
    """Fully developed speckles (n, n, n) of a Gaussian body: |transform of noise|^2, mean 1."""
    rng = np.random.default_rng(seed)
    axis = np.arange(_N) - _N // 2
    x, y, z = np.meshgrid(axis, axis, axis, indexing="ij")
    body = rng.normal(size=(_N,) * 3) * ((x**2 + y**2 + z**2) <= (reach / 2) ** 2)
    intensity = np.abs(np.fft.fftshift(np.fft.fftn(body))) ** 2
    return np.asarray(intensity / intensity.mean())


def _halves(truth: NDArray[np.float64], noise: float, seed: int) -> list[NDArray[np.float32]]:
    """Two copies with noise that grows from the centre to the edge, as that of merged photons does."""
    rng = np.random.default_rng(seed)
    radius = np.where(shell_index(_N) < 0, _N // 2, shell_index(_N))
    spread = noise * (radius / (_N // 2)) ** 2
    copies = [truth + spread * rng.normal(size=truth.shape) for _ in range(2)]
    return [copy.astype(np.float32) for copy in copies]


def _errors(values: NDArray[np.float32], truth: NDArray[np.float64]) -> NDArray[np.float64]:
    index = shell_index(_N)
    square = (values - truth) ** 2
    return np.array([square[index == shell].mean() for shell in range(4, _N // 2)])


@pytest.mark.parametrize("noise", [0.3, 3.0, 20.0])
def test_filtered_halves_are_nearer_to_the_truth_than_shrunk_ones_in_every_shell(noise: float) -> None:
    truth = _speckles(reach=10, seed=1)
    first, second = _halves(truth, noise, seed=2)
    exposure = np.ones(truth.shape)
    correlation = half_correlation(first, second, exposure)
    mean, gain = shell_means(first, exposure), np.clip(smoothed(correlation), 0, 1)
    shrunk = mean + (first - mean) * gain[shells_of(first)]
    filtered = WienerFilter(first, second, exposure)(first, exposure)
    assert filtered.dtype == np.float32
    error, reference = _errors(filtered, truth), _errors(shrunk, truth)
    assert (error < np.maximum(1.2 * reference, 0.01)).all()
    assert error[-5:].mean() < 0.9 * reference[-5:].mean()


def test_signal_without_noise_passes_unchanged() -> None:
    truth = _speckles(reach=10, seed=3).astype(np.float32)
    exposure = np.ones(truth.shape)
    filtered = WienerFilter(truth, truth, exposure)(truth, exposure)
    index = shell_index(_N)
    inside = (index >= 3) & (index < _N // 2 - 2)
    assert np.abs(filtered - truth)[inside].max() < 0.1 * truth[inside].std()


def test_noise_alone_leaves_the_means_of_shells() -> None:
    rng = np.random.default_rng(4)
    first, second = (1 + 0.3 * rng.normal(size=(2, _N, _N, _N))).astype(np.float32)
    exposure = np.ones(first.shape)
    filtered = WienerFilter(first, second, exposure)(first, exposure)
    index = shell_index(_N)
    outer = (index > 8) & (index < _N // 2 - 2)
    assert np.std(filtered[outer]) < 0.3 * np.std(first[outer])


def test_both_halves_together_are_filtered_less() -> None:
    truth = _speckles(reach=10, seed=5)
    first, second = _halves(truth, 3.0, seed=6)
    exposure = np.ones(truth.shape)
    keep_signal = WienerFilter(first, second, exposure)
    both = (first + second) / 2
    error = _errors(keep_signal(both, exposure, is_half=False), truth)
    assert (error < _errors(both, truth)).all()
    assert error.mean() < _errors(keep_signal(first, exposure), truth).mean()


def test_what_a_prior_takes_from_faint_speckles_is_given_back() -> None:
    truth = _speckles(reach=10, seed=8)
    rng = np.random.default_rng(9)
    # Frames cross some voxels more often than others, and bring fewer photons the further out.
    exposure = rng.gamma(2.0, 0.5, truth.shape) * np.where(shell_index(_N) < 8, 4.0, 0.4)
    prior = 0.5
    halves = [
        ((rng.poisson(truth * exposure / 2) + prior / 2) / ((exposure + prior) / 2)).astype(np.float32)
        for _ in range(2)
    ]
    keep_signal = WienerFilter(halves[0], halves[1], exposure)
    both = ((halves[0] + halves[1]) / 2).astype(np.float32)
    as_it_is = keep_signal(both, exposure, is_half=False)
    given_back = keep_signal(both, exposure, is_half=False, told=exposure / (exposure + prior))
    outer = (shell_index(_N) >= 9) & (shell_index(_N) < _N // 2 - 2)

    def slope(values: NDArray[np.float32]) -> float:
        """How much of the contrast of the truth the values have."""
        deviation = truth[outer] - truth[outer].mean()
        return float((values[outer] * deviation).sum() / (deviation**2).sum())

    assert slope(as_it_is) < 0.5
    assert 0.65 < slope(given_back) < 1.1
    assert _errors(given_back, truth)[5:].mean() < 0.6 * _errors(as_it_is, truth)[5:].mean()


@pytest.mark.parametrize("noise", [(1e-3, 50.0), (0.1, 1.0)])
def test_hardly_more_factors_than_needed_make_the_gains_of_all_shells(noise: tuple[float, float]) -> None:
    power = np.geomspace(30, 1e-4, 40)
    gain = power / (power + np.geomspace(*noise, 25)[:, None])
    of_shell, common = _few_factors(gain)
    assert np.abs(of_shell @ common - gain).max() <= 0.01
    left, strength, right = np.linalg.svd(gain, full_matrices=False)
    errors = [np.abs((left[:, :k] * strength[:k]) @ right[:k] - gain).max() for k in range(len(strength) + 1)]
    assert len(common) <= np.argmax(np.array(errors) <= 0.01) + 3
    assert len(_few_factors(np.repeat(gain[:1], 5, axis=0))[1]) == 1  # one noise, one filter


def test_chance_is_larger_among_the_few_independent_voxels_of_a_symmetric_particle() -> None:
    """What two halves of noise have in common by chance is never taken for contrast."""
    group, rng, n = as_point_group("O"), np.random.default_rng(7), 31
    first, second = (
        1 + mean_over_group(rng.normal(size=(n, n, n)), group).astype(np.float32) for _ in range(2)
    )
    exposure = np.ones((n, n, n))
    shells = slice(4, 14)
    cross = shell_covariances(first, second, exposure)[0][shells]
    found, as_if_none = (
        WienerFilter(first, second, exposure, order).contrast[shells] for order in (group.order, 1)
    )
    assert np.all(found**2 > 1.001 * cross)
    assert np.any(as_if_none**2 < 1.001 * cross)  # noise passes for signal
    assert np.median(found / as_if_none) == pytest.approx(group.order**0.25, rel=0.2)


@pytest.mark.parametrize(("n", "is_mirrored"), [(15, False), (16, False), (15, True)])
def test_common_power_is_that_of_the_whole_transform(n: int, is_mirrored: bool) -> None:
    rng = np.random.default_rng(3)
    common = rng.normal(size=(n, n, n))
    cubes = [(common + 0.3 * rng.normal(size=(n, n, n))).astype(np.float32) for _ in range(2)]
    if is_mirrored:
        cubes = [friedel_symmetrise(cube) for cube in cubes]
    halves = halved(cubes)
    assert is_half(halves[0]) == is_mirrored
    curve = np.linspace(1, 2, n_shells_of(cubes[0]))
    power, number = _common_power(*(transformed(half, curve) for half in halves))
    a, b = (np.fft.fftn(cube * curve[shells_of(cube)]) for cube in cubes)
    axis = np.minimum(np.arange(n), n - np.arange(n))
    square = axis[:, None, None] ** 2 + axis[:, None] ** 2 + axis**2
    distance = np.minimum(np.rint(np.sqrt(square)).astype(int), n // 2 + 1).ravel()
    count = np.bincount(distance)
    mean = np.maximum(smoothed(np.bincount(distance, (a * b.conj()).real.ravel()) / count), 0)
    np.testing.assert_array_equal(number, count)
    np.testing.assert_allclose(power, mean / (mean * count).sum() * count.sum(), rtol=1e-4)


@pytest.mark.parametrize("reach", [6, 15])
def test_half_of_a_cube_is_filtered_as_the_whole_is(reach: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Intensities have mirror images, and only half of each is worked on."""
    truth = _speckles(reach, seed=11)
    first, second = (friedel_symmetrise(half) for half in _halves(truth, 3.0, seed=12))
    rng = np.random.default_rng(13)
    exposure = friedel_symmetrise(rng.gamma(2.0, 0.5, truth.shape))
    told = exposure / (exposure + 0.5)

    def found() -> list[NDArray[np.float64]]:
        keep = WienerFilter(first, second, exposure)
        halves = keep.filtered([(first, exposure, True), (second, exposure / 2, True)])
        both = keep((first + second) / 2, exposure, is_half=False, told=told)
        return [*halves, both, keep.correlation, keep.noise]

    of_half = found()
    assert all(np.array_equal(cube, cube[::-1, ::-1, ::-1]) for cube in of_half[:3])
    monkeypatch.setattr(autocorrelation, "halved", list)
    for half, whole in zip(of_half, found(), strict=True):
        # A transform in float32 rounds by a share of the largest value.
        np.testing.assert_allclose(half, whole, rtol=2e-5, atol=2e-6 * np.abs(whole).max())


def test_a_cube_without_mirror_images_is_filtered_whole() -> None:
    truth = _speckles(reach=10, seed=14)
    first, second = _halves(truth, 1.0, seed=15)
    exposure = np.ones(truth.shape)
    filtered = WienerFilter(first, second, exposure)(first, exposure)
    turned = (cube[::-1, ::-1, ::-1] for cube in (first, second))
    np.testing.assert_allclose(
        WienerFilter(*turned, exposure)(first[::-1, ::-1, ::-1], exposure),
        filtered[::-1, ::-1, ::-1],
        atol=1e-4,
    )
    assert np.abs(filtered - filtered[::-1, ::-1, ::-1]).max() > 0.01


def test_dark_places_of_the_whole_are_dark() -> None:
    """Frames meet halves, whose overshoots are cut off early; the result is not biased by that."""
    n = 21
    radius = shell_index(n)
    cube = np.where(np.indices((n, n, n)).sum(axis=0) % 4 < 2, 2.0, 0.0).astype(np.float32)
    cube = np.where(radius < 0, np.float32(1), cube)
    keep = WienerFilter(cube, cube, np.ones_like(cube))
    whole, half = (keep(cube, np.ones_like(cube), is_half=is_half) for is_half in (False, True))
    dark = (cube == 0) & (radius > 3) & (radius < 9)
    assert np.median(whole[dark]) < 0.005
    assert half.min() == pytest.approx(0.02)


def test_halves_that_contradict_each_other_in_some_shells_correlate_by_no_less_than_minus_one() -> None:
    """A filter that gains much made -20 of such a shell, and the mean said that halves agree on nothing."""
    truth = _speckles(reach=4, seed=1)
    first, second = _halves(truth, 0.5, seed=2)
    index = shell_index(_N)
    opposed = (index >= 12) & (index <= 16)
    second[opposed] = 2 - second[opposed]
    found = WienerFilter(first, second, np.ones(truth.shape)).correlation
    assert found[13:16].max() < 0
    assert found.min() >= -1
