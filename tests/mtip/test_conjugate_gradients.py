"""Shifted systems against direct solutions."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orienteer.compute.arrays import array_namespace, to_device, to_numpy
from orienteer.errors import OrienteerError
from orienteer.mtip.conjugate_gradients import solve_shifted


def matrix_of(n: int, condition: float, seed: int = 0) -> np.ndarray:
    """A symmetric matrix whose eigenvalues go from 1 down to 1 / condition, evenly in their logarithms."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((n, n)))[0]
    return (basis * np.geomspace(1, 1 / condition, n)) @ basis.T


def product_of(matrix: Any, dtype: Any = np.float64) -> Callable[[Any], Any]:
    matrix = matrix.astype(dtype)
    return lambda x: x.astype(dtype) @ matrix


def test_all_shifts_are_solved_to_the_tolerance() -> None:
    matrix, shifts = matrix_of(80, 1e4), np.geomspace(1e-3, 1, 7)
    b = np.random.default_rng(1).standard_normal(80)
    found = solve_shifted(product_of(matrix), b, shifts, tolerance=1e-10, max_iterations=400)
    assert found.converged.all()
    for shift, x, residual, form in zip(shifts, found.solutions, found.residuals, found.forms, strict=True):
        system = matrix + shift * np.eye(80)
        assert residual == pytest.approx(np.linalg.norm(b - system @ x) / np.linalg.norm(b), rel=1e-3)
        assert residual <= 1e-10
        assert x == pytest.approx(np.linalg.solve(system, b), rel=1e-6, abs=1e-6)
        assert form == pytest.approx(x @ matrix @ x)


def test_many_shifts_cost_hardly_more_products_than_the_smallest_alone() -> None:
    matrix, shifts = matrix_of(120, 1e3), np.geomspace(1e-3, 1, 10)
    b = np.random.default_rng(1).standard_normal(120)
    alone = solve_shifted(product_of(matrix), b, shifts[:1], tolerance=1e-8)
    all_of_them = solve_shifted(product_of(matrix), b, shifts, tolerance=1e-8)
    assert all_of_them.iterations <= alone.iterations + 1
    assert all_of_them.products <= alone.products + 10


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 30), condition=st.floats(1, 1e5), seed=st.integers(0, 1000),
    shifts=st.lists(st.floats(1e-4, 10), min_size=1, max_size=5),
)  # fmt: skip
def test_any_shifted_system_is_solved(n: int, condition: float, seed: int, shifts: list[float]) -> None:
    matrix = matrix_of(n, condition, seed)
    b = np.random.default_rng(seed).standard_normal(n)
    found = solve_shifted(product_of(matrix), b, shifts, tolerance=1e-8, max_iterations=2000)
    assert found.converged.all()
    for shift, x in zip(shifts, found.solutions, strict=True):
        assert np.linalg.norm(b - matrix @ x - shift * x) <= 1.01e-8 * np.linalg.norm(b)


@pytest.mark.parametrize("tolerance", [1e-4, 1e-6, 1e-10])
def test_products_of_single_precision_reach_the_residuals_of_double(tolerance: float) -> None:
    matrix, shifts = matrix_of(100, 1e6), [1e-4, 1e-2]
    b = np.random.default_rng(2).standard_normal(100)
    calls = {"double": 0}

    def double(x: Any) -> Any:
        calls["double"] += 1
        return x @ matrix

    found = solve_shifted(
        double, b, shifts, tolerance=tolerance, max_iterations=3000,
        quick_product=product_of(matrix, np.float32),
    )  # fmt: skip
    assert found.converged.all()
    for shift, x in zip(shifts, found.solutions, strict=True):
        assert np.linalg.norm(b - matrix @ x - shift * x) <= tolerance * np.linalg.norm(b)
    assert calls["double"] < found.products / 4  # only residuals are made in double precision


def test_many_shifts_beyond_single_precision_are_solved_together_in_double() -> None:
    matrix, shifts = matrix_of(100, 1e6), np.geomspace(1e-6, 1e-1, 10)
    b = np.random.default_rng(2).standard_normal(100)
    quick = product_of(matrix, np.float32)
    double = solve_shifted(product_of(matrix), b, shifts, tolerance=1e-9, max_iterations=3000)
    mixed = solve_shifted(
        product_of(matrix), b, shifts, tolerance=1e-9, max_iterations=3000, quick_product=quick
    )
    assert double.converged.all()
    assert mixed.converged.all()
    assert mixed.products < 3 * double.products


def test_a_coarse_product_hands_over_to_the_exact_one_when_it_no_longer_helps() -> None:
    matrix = matrix_of(60, 1e3)
    noisy = matrix + 0.5 * matrix_of(60, 10, seed=5)  # hardly the same operator
    b = np.random.default_rng(2).standard_normal(60)
    found = solve_shifted(
        product_of(matrix), b, [1e-3], tolerance=1e-8, max_iterations=3000, quick_product=product_of(noisy)
    )
    assert found.converged.all()


def test_it_stops_after_the_iterations_allowed_and_says_so() -> None:
    matrix = matrix_of(200, 1e8)
    b = np.random.default_rng(2).standard_normal(200)
    found = solve_shifted(product_of(matrix), b, [1e-9, 10.0], tolerance=1e-10, max_iterations=12)
    assert found.iterations == 12
    assert found.converged.tolist() == [False, True]
    assert 1e-10 < found.residuals[0] < np.inf
    wanted = np.linalg.solve(matrix + 1e-9 * np.eye(200), b)
    error = found.solutions[0] - wanted
    assert error @ matrix @ error < wanted @ matrix @ wanted  # nearer than 0, in its norm


@pytest.mark.parametrize("quick", [False, True])
def test_an_operator_with_negative_eigenvalues_does_not_go_on_for_ever(quick: bool) -> None:
    matrix = -np.eye(5)
    product = product_of(matrix)
    found = solve_shifted(
        product, np.ones(5), [0.5], max_iterations=1000, quick_product=product if quick else None
    )
    assert not found.converged.any()
    assert found.iterations < 10


def test_products_that_are_not_numbers_do_not_converge() -> None:
    found = solve_shifted(lambda x: x * np.nan, np.ones(5), [0.5, 1.0])
    assert not found.converged.any()


def test_nothing_on_the_right_side_has_nothing_as_its_solution() -> None:
    found = solve_shifted(product_of(np.eye(4)), np.zeros(4), [0.1, 1])
    assert found.converged.all()
    assert not found.solutions.any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shifts": [-1.0]}, "none of them negative"),
        ({"shifts": []}, "none of them negative"),
        ({"shifts": [np.nan]}, "none of them negative"),
        ({"tolerance": 0.0}, "between 0 and 1"),
        ({"max_iterations": 0}, "at least 1 is needed"),
        ({"right_side": np.full(4, np.inf)}, "not finite"),
    ],
)
def test_wrong_arguments_are_refused(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"right_side": np.ones(4), "shifts": [1.0], **change}
    with pytest.raises(OrienteerError, match=message):
        solve_shifted(product_of(np.eye(4)), **arguments)


@pytest.mark.gpu
def test_the_gpu_solves_the_same() -> None:
    matrix, b = matrix_of(64, 1e4), np.random.default_rng(1).standard_normal((4, 16))
    there = to_device(matrix, "cuda")

    def product(x: Any) -> Any:
        flat = array_namespace(x).reshape(x, (-1, 64))
        return (flat @ there).reshape(x.shape)

    def quick(x: Any) -> Any:
        return product(x.astype(np.float32)).astype(np.float32)

    found = solve_shifted(
        product, to_device(b, "cuda"), [1e-3, 1e-1], tolerance=1e-8, max_iterations=500, quick_product=quick
    )
    assert found.converged.all()
    for shift, x in zip(found.shifts, to_numpy(found.solutions), strict=True):
        wanted = np.linalg.solve(matrix + shift * np.eye(64), b.ravel())
        assert x.ravel() == pytest.approx(wanted, rel=1e-5, abs=1e-5)
