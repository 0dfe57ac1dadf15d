"""Products by transforms against explicit matrices."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orienteer.compute.arrays import to_device, to_numpy
from orienteer.errors import OrienteerError
from orienteer.mtip.toeplitz import ToeplitzProduct, beyond


def even_kernel(n: int, seed: int = 0) -> np.ndarray:
    kernel = np.random.default_rng(seed).standard_normal((2 * n - 1,) * 3)
    return kernel + kernel[::-1, ::-1, ::-1]


def explicit(dense: Any, kernel: np.ndarray, n: int) -> np.ndarray:
    v = dense.voxels(n)
    return kernel[tuple(np.moveaxis(v[:, None] - v[None], -1, 0) + n - 1)]


@pytest.mark.parametrize("n", [1, 2, 5, 6])
@pytest.mark.parametrize(("precision", "error"), [("double", 1e-12), ("single", 1e-5)])
def test_the_product_is_that_of_the_explicit_matrix(
    n: int, precision: Any, error: float, dense: SimpleNamespace
) -> None:
    rng = np.random.default_rng(1)
    kernel, support = even_kernel(n), rng.random((n, n, n)) > 0.3
    x = rng.standard_normal((3, n, n, n))
    s = support.ravel()
    matrix = explicit(dense, kernel, n) * s[:, None] * s
    found = ToeplitzProduct(kernel, support=support, precision=precision)(x)
    wanted = (x.reshape(3, -1) @ matrix).reshape(x.shape)
    assert np.linalg.norm(found - wanted) <= error * np.linalg.norm(wanted)
    assert found.dtype == (np.float64 if precision == "double" else np.float32)
    assert ToeplitzProduct(kernel, support=support)(x[0]) == pytest.approx(wanted[0])


def test_the_penalty_is_the_share_of_the_power_at_unmeasured_frequencies(dense: SimpleNamespace) -> None:
    n, radius = 6, 0.35
    product = ToeplitzProduct(np.zeros((11, 11, 11)), outside=3.0, radius=radius)
    m = product.box
    x = np.random.default_rng(2).standard_normal((n, n, n))
    padded = np.zeros((m, m, m))
    padded[:n, :n, :n] = x
    power = np.abs(np.fft.fftn(padded)) ** 2 / m**3
    f = np.fft.fftfreq(m)
    away = f[:, None, None] ** 2 + f[:, None] ** 2 + f**2 > radius**2
    assert (x * product(x)).sum() == pytest.approx(3.0 * power[away].sum())
    all_but_one = ToeplitzProduct(np.zeros((11, 11, 11)), outside=3.0, radius=1e-6)
    # All frequencies but 0, hence in the unit of a Tikhonov term.
    assert all_but_one(x) == pytest.approx(3.0 * (x - x.sum() / m**3))


@settings(max_examples=15, deadline=None)
@given(n=st.integers(1, 6), seed=st.integers(0, 1000), outside=st.floats(0, 10))
def test_the_product_is_symmetric(n: int, seed: int, outside: float) -> None:
    rng = np.random.default_rng(seed)
    product = ToeplitzProduct(even_kernel(n, seed), outside=outside, radius=0.3)
    x, y = rng.standard_normal((2, n, n, n))
    left, right = (x * product(y)).sum(), (y * product(x)).sum()
    assert left == pytest.approx(right, rel=1e-9, abs=1e-9 * n**3)


def test_frequencies_beyond_a_radius_are_even() -> None:
    mask = beyond(9, 0.4)
    assert not mask[0, 0, 0]
    assert mask[4, 4, 4]
    assert np.array_equal(mask[1:], mask[:0:-1])


def test_wrong_shapes_are_refused() -> None:
    with pytest.raises(OrienteerError, match="kernel has shape"):
        ToeplitzProduct(np.zeros((4, 4, 4)))
    with pytest.raises(OrienteerError, match="support has shape"):
        ToeplitzProduct(np.zeros((5, 5, 5)), support=np.ones((4, 4, 4)))
    with pytest.raises(OrienteerError, match="penalty"):
        ToeplitzProduct(np.zeros((5, 5, 5)), outside=-1)
    with pytest.raises(OrienteerError, match="volumes have shape"):
        ToeplitzProduct(np.zeros((5, 5, 5)))(np.zeros((4, 4, 4)))


def test_transforms_of_whole_cubes_as_the_gpu_makes_them_give_the_same_product() -> None:
    x = np.random.default_rng(1).standard_normal((2, 6, 6, 6))
    product = ToeplitzProduct(even_kernel(6), outside=2.0, radius=0.3)
    by_axes = product(x)
    product._on_gpu = True
    assert product(x) == pytest.approx(by_axes, rel=1e-10, abs=1e-9)


@pytest.mark.gpu
def test_the_gpu_gives_the_same_product() -> None:
    kernel, x = even_kernel(7), np.random.default_rng(1).standard_normal((2, 7, 7, 7))
    support = np.random.default_rng(2).random((7, 7, 7)) > 0.2
    here = ToeplitzProduct(kernel, support=support, outside=2.0, radius=0.3)(x)
    there = ToeplitzProduct(
        to_device(kernel, "cuda"), support=to_device(support, "cuda"), outside=2.0, radius=0.3
    )(to_device(x, "cuda"))
    assert to_numpy(there) == pytest.approx(here, rel=1e-10, abs=1e-9)
