"""The Fourier shell correlation is that of the plain sum, and does not depend on what it must not."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from orienteer.compare.fsc import fourier_shell_correlation, independent_voxels
from orienteer.compare.shells import n_shells, shell_index
from orienteer.compute.arrays import import_cupy
from orienteer.errors import OrienteerError


def noise(n: int, seed: int) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal(size=(n, n, n))


def plain_fsc(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """The definition, over the whole transform."""
    first, second = (np.fft.fftshift(np.fft.fftn(x.astype(np.float64))) for x in (a, b))
    shells = shell_index(len(a))
    curve = []
    for shell in range(n_shells(len(a))):
        p, q = first[shells == shell], second[shells == shell]
        curve.append((p * q.conj()).sum().real / np.sqrt((abs(p) ** 2).sum() * (abs(q) ** 2).sum()))
    return np.array(curve)


@pytest.mark.parametrize("n", [1, 2, 7, 8, 21, 24])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_is_the_plain_sum_for_even_and_odd_boxes(n: int, dtype: type) -> None:
    a, b = (gaussian_filter(noise(n, seed), 0.7).astype(dtype) for seed in (1, 2))
    b += a
    found = fourier_shell_correlation(a, b, 1.5)
    np.testing.assert_allclose(found.correlation, plain_fsc(a, b), atol=1e-9)
    np.testing.assert_allclose(found.q_inv_A, np.arange(n_shells(n)) / (1.5 * n))


def test_shells_that_are_weak_by_many_orders_are_right_too() -> None:
    """float32 transforms would get these wrong by more than 1e-3."""
    x, y, z = np.indices((32, 32, 32)) - 16.0
    ball = 1e4 * np.exp(-(x**2 + y**2 + z**2) / 30)
    a, b = ball + 1e-5 * noise(32, 1), ball + 1e-5 * noise(32, 2) + 1e-5 * noise(32, 1)
    np.testing.assert_allclose(fourier_shell_correlation(a, b).correlation, plain_fsc(a, b), atol=1e-5)


@pytest.mark.parametrize("n", [5, 6, 12, 13])
def test_of_a_pair_of_opposite_voxels_one_counts(n: int) -> None:
    whole = np.bincount(shell_index(n)[shell_index(n) >= 0])
    counted = independent_voxels(n)
    assert counted[0] == 1
    np.testing.assert_array_equal(2 * counted[1:], whole[1:])


def test_noise_agrees_with_noise_nowhere() -> None:
    curves = [fourier_shell_correlation(noise(24, 2 * s), noise(24, 2 * s + 1)) for s in range(20)]
    values = np.array([curve.correlation for curve in curves])[:, 2:]
    expected = 1 / np.sqrt(2 * curves[0].n_voxels[2:])  # real and imaginary part of each are independent
    assert abs(values.mean()) < 4 * np.sqrt((expected**2).sum() / 20) / len(expected)
    np.testing.assert_allclose(values.std(axis=0), expected, rtol=0.5)


@settings(deadline=None, max_examples=25)
@given(
    st.integers(4, 12), st.floats(0.01, 100), st.floats(-5, 5), st.integers(0, 3), st.integers(-9, 9),
    st.permutations([0, 1, 2]),
)  # fmt: skip
def test_scale_offset_and_what_is_done_to_both_change_nothing(
    n: int, scale: float, offset: float, quarter_turns: int, shift: int, axes: list[int]
) -> None:
    a, b = noise(n, 1), noise(n, 1) + noise(n, 2)
    wanted = fourier_shell_correlation(a, b).correlation
    scaled = fourier_shell_correlation(a, scale * b + offset).correlation
    np.testing.assert_allclose(scaled[1:], wanted[1:], atol=1e-9)
    moved = [np.roll(np.rot90(x, quarter_turns, axes[:2]), shift, axes[2]) for x in (a, b)]
    np.testing.assert_allclose(fourier_shell_correlation(*moved).correlation, wanted, atol=1e-9)
    np.testing.assert_allclose(fourier_shell_correlation(b, a).correlation, wanted, atol=1e-12)
    np.testing.assert_allclose(fourier_shell_correlation(a, -b).correlation, -wanted, atol=1e-12)


def test_a_shell_without_content_has_no_value() -> None:
    a = noise(10, 1)
    assert np.isnan(fourier_shell_correlation(np.zeros((10, 10, 10)), a).correlation).all()
    flat = fourier_shell_correlation(np.ones((10, 10, 10)), a).correlation
    assert abs(flat[0]) == pytest.approx(1)
    assert np.isnan(flat[1:]).all()


def test_wrong_densities_are_told() -> None:
    cube = noise(6, 1)
    with pytest.raises(OrienteerError, match="6 x 6 x 7; a cube"):
        fourier_shell_correlation(np.zeros((6, 6, 7)), cube)
    with pytest.raises(OrienteerError, match="6 and 8 voxels"):
        fourier_shell_correlation(cube, noise(8, 1))
    holed = cube.copy()
    holed[1, 2, 3] = np.nan
    with pytest.raises(OrienteerError, match="1 voxel of the second"):
        fourier_shell_correlation(cube, holed)
    with pytest.raises(OrienteerError, match="no size"):
        fourier_shell_correlation(cube, cube, 0.0)


@pytest.mark.gpu
@pytest.mark.parametrize("n", [7, 8, 33, 64])
def test_the_gpu_gives_the_same_curve(n: int) -> None:
    cupy = import_cupy()
    assert cupy is not None
    a, b = noise(n, 1), noise(n, 1) + noise(n, 2)
    found = fourier_shell_correlation(cupy.asarray(a), cupy.asarray(b), 2.0)
    np.testing.assert_allclose(found.correlation, plain_fsc(a, b), atol=1e-9)


@pytest.mark.gpu
def test_the_gpu_compares_256_cubed_in_five_milliseconds() -> None:
    cupy = import_cupy()
    assert cupy is not None
    a, b = (cupy.random.default_rng(seed).standard_normal((256,) * 3, dtype="f4") for seed in (1, 2))
    seconds = []
    for _ in range(5):
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        fourier_shell_correlation(a, b)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.005
