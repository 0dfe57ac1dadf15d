"""The corner of the L-curve on problems whose best regularisation is known."""

from typing import Any

import numpy as np
import pytest

from orienteer.errors import OrienteerError
from orienteer.mtip.l_curve import choose_lambda

LAMBDAS = np.geomspace(1e-12, 1, 53)


def curve_of(seed: int, noise: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Misfits, sizes and true errors of a blurred signal with ten times as many data as unknowns.

    Singular values fall by e in four places, the signal's coefficients in thirteen.  In the singular vectors
    everything is diagonal; the data beyond them are noise that nothing explains.
    """
    rng = np.random.default_rng(seed)
    n, m = 60, 600
    s = np.exp(-0.25 * np.arange(n))
    x = np.exp(-0.075 * np.arange(n)) * rng.choice([-1, 1], n)
    b, e = np.append(s * x, np.zeros(m - n)), rng.standard_normal(m)
    b += noise * np.linalg.norm(b) * e / np.linalg.norm(e)
    y = s * b[:n] / (s**2 + LAMBDAS[:, None])
    misfit = np.hypot(np.linalg.norm(s * y - b[:n], axis=1), np.linalg.norm(b[n:]))
    return misfit, np.linalg.norm(y, axis=1), np.linalg.norm(y - x, axis=1)


def chosen_over_best(noise: float, n_seeds: int = 100) -> tuple[np.ndarray, np.ndarray]:
    """Chosen lambda over that of the smallest true error, and the error over the smallest, for many."""
    ratios, errors = [], []
    for seed in range(n_seeds):
        misfit, size, error = curve_of(seed, noise)
        curve = choose_lambda(LAMBDAS, misfit, size)
        assert curve.reason == "corner"
        ratios.append(LAMBDAS[curve.chosen] / LAMBDAS[np.argmin(error)])
        errors.append(error[curve.chosen] / error.min())
    return np.array(ratios), np.array(errors)


@pytest.mark.parametrize("noise", [1e-2, 1e-3])
def test_the_corner_is_as_a_rule_within_a_factor_of_3_of_the_best_regularisation(noise: float) -> None:
    ratios, errors = chosen_over_best(noise)
    assert np.mean((ratios > 1 / 3) & (ratios < 3)) >= 0.9
    assert np.quantile(errors, 0.9) < 1.2
    assert errors.max() < 1.5


@pytest.mark.parametrize("noise", [1e-1, 1e-4])
def test_with_much_or_little_noise_the_corner_is_farther_off_but_costs_little(noise: float) -> None:
    """A known weakness: with much noise it lies at too large a lambda, with little at too small a one."""
    ratios, errors = chosen_over_best(noise)
    assert ((ratios > 1 / 20) & (ratios < 20)).all()
    assert (np.median(ratios) > 1) == (noise > 1e-2)
    assert np.quantile(errors, 0.9) < 1.5
    assert errors.max() < 2


def test_without_noise_the_smallest_is_chosen() -> None:
    misfit, size, _ = curve_of(0, 0.0)
    curve = choose_lambda(LAMBDAS, misfit, size)
    assert curve.chosen == 0
    assert curve.reason == "no corner"


def test_if_all_let_the_noise_in_the_largest_is_chosen() -> None:
    misfit, size, _ = curve_of(0, 1e-2)
    few = slice(0, 10)
    curve = choose_lambda(LAMBDAS[few], misfit[few], size[few])
    assert (curve.chosen, curve.reason) == (9, "steep")


def test_the_curvature_is_that_of_the_curve() -> None:
    """Against plain second differences of both logarithms, where neither is lost in rounding."""
    misfit, size, _ = curve_of(1, 1e-2)
    t, rho, eta = np.log(LAMBDAS), np.log(misfit), np.log(size)
    rho_1, eta_1 = np.gradient(rho, t), np.gradient(eta, t)
    rho_2, eta_2 = np.gradient(rho_1, t), np.gradient(eta_1, t)
    plain = (rho_1 * eta_2 - rho_2 * eta_1) / np.hypot(rho_1, eta_1) ** 3
    found = choose_lambda(LAMBDAS, misfit, size).curvature
    assert abs(int(np.argmax(found)) - int(np.argmax(plain))) <= 1
    middle = slice(5, -5)
    assert found[middle] == pytest.approx(plain[middle], abs=0.25 * plain.max())


def test_the_order_in_which_they_are_given_does_not_matter() -> None:
    misfit, size, _ = curve_of(2, 1e-3)
    forward = choose_lambda(LAMBDAS, misfit, size)
    backward = choose_lambda(LAMBDAS[::-1], misfit[::-1], size[::-1])
    assert forward.chosen == len(LAMBDAS) - 1 - backward.chosen


def test_what_is_not_usable_is_not_chosen() -> None:
    misfit, size, _ = curve_of(2, 1e-3)
    usable = np.arange(53) > 40
    assert choose_lambda(LAMBDAS, misfit, size, usable=usable).chosen > 40
    misfit[:45] = np.nan
    assert choose_lambda(LAMBDAS, misfit, size).chosen >= 45


@pytest.mark.parametrize("n", [1, 2, 3])
def test_short_lists_have_a_choice(n: int) -> None:
    curve = choose_lambda(np.geomspace(1e-3, 1e-1, n), np.geomspace(0.1, 1, n), np.geomspace(2, 1, n))
    assert 0 <= curve.chosen < n
    assert (curve.reason == "single") == (n == 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, 2.0], [1.0], [1.0]), "same length"),
        (([1.0, 0.0], [1.0, 1.0], [1.0, 1.0]), "positive"),
        (([1.0, 1.0], [1.0, 1.0], [1.0, 1.0]), "different"),
        (([1.0, 2.0], [np.nan, np.inf], [1.0, 1.0]), "converged"),
    ],
)
def test_wrong_lists_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises(OrienteerError, match=message):
        choose_lambda(*arguments)
