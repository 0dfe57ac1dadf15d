"""The interpolation kernel: its promise, its transform, its symmetry."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orienteer.fourier.interpolation_kernel import WIDTHS, best_kernel, kernel_for_error


@pytest.mark.parametrize("width", WIDTHS)
def test_the_stated_error_is_the_error_of_interpolating_waves(width: int) -> None:
    kernel = best_kernel(width, 2.0)
    squares = []
    for frequency in (np.arange(40) + 0.5) / 40 / (2 * kernel.oversampling):
        position = 20 + (np.arange(400) + 0.5) / 40
        first = np.floor(position - width / 2).astype(int) + 1
        taps = first[:, None] + np.arange(width)
        weights = kernel.weights(position - width / 2 - np.floor(position - width / 2))
        interpolated = (weights * np.exp(2j * np.pi * frequency * taps)).sum(1) / kernel.transform(frequency)
        squares.append(np.mean(np.abs(interpolated - np.exp(2j * np.pi * frequency * position)) ** 2))
    assert np.sqrt(3 * np.mean(squares)) == pytest.approx(kernel.error, rel=0.05, abs=2e-8)


@given(fraction=st.floats(0, 1), width=st.sampled_from(WIDTHS))
@settings(max_examples=40, deadline=None)
def test_the_kernel_is_even(fraction: float, width: int) -> None:
    kernel = best_kernel(width, 2.0)
    np.testing.assert_allclose(kernel.weights(fraction), kernel.weights(1 - fraction)[::-1], atol=1e-12)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_transform_is_the_integral_of_the_kernel(width: int) -> None:
    kernel = best_kernel(width, 2.5)
    fraction = (np.arange(4000) + 0.5) / 4000
    offset = width / 2 - 1 - np.arange(width) + fraction[:, None]
    for frequency in (0.0, 0.13, 0.9, 1.1):
        integral = (kernel.weights(fraction) * np.cos(2 * np.pi * frequency * offset)).sum() / 4000
        assert kernel.transform(frequency) == pytest.approx(integral, abs=2e-7)
    assert kernel.transform(0.0) == pytest.approx(1)


def test_wider_kernels_and_finer_grids_err_less() -> None:
    errors = np.array([[best_kernel(w, s).error for s in (1.5, 2.0, 2.5)] for w in (3, 4, 5, 6)])
    assert (np.diff(errors, axis=0) < 0).all()
    assert (np.diff(errors, axis=1) < 0).all()


def test_the_kernel_for_an_error_keeps_it_with_little_oversampling() -> None:
    kernel = kernel_for_error(5, 4e-5)
    assert kernel is not None
    assert 2e-5 < kernel.error <= 4e-5
    assert kernel.oversampling < 2.0
    assert kernel_for_error(3, 1e-6) is None
