"""The regularisation that predicts best, on frames of a known object."""

from types import SimpleNamespace

import numpy as np
import pytest

from orienteer.errors import OrienteerError
from orienteer.mtip.held_out import choose_by_halves
from orienteer.mtip.merging import merge
from orienteer.mtip.normal_equations import NormalEquations

VOXEL_A = 7.0
Q_MAX = 0.5 / VOXEL_A
REGULARISATIONS = np.geomspace(1e-5, 1e2, 8)


def two_halves(dense: SimpleNamespace, noise: float, seed: int) -> tuple[np.ndarray, list[NormalEquations]]:
    """The truth, and the sums of both halves of 16 frames."""
    truth = dense.small_autocorrelation(9, radius=2, seed=seed)
    points, matrices = dense.ewald_points(14, Q_MAX), dense.random_turns(16, seed)
    clean = (dense.intensity_matrix(9, VOXEL_A, dense.turned(points, matrices)) @ truth.ravel()).real
    errors = np.random.default_rng(seed).standard_normal(clean.size) * noise * np.std(clean)
    frames = (clean + errors).reshape(16, -1)
    halves = [
        NormalEquations.empty(9, VOXEL_A).with_frames(frames[part], points, matrices[part])
        for part in (slice(0, 8), slice(8, 16))
    ]
    return truth, halves


@pytest.mark.parametrize("noise", [0.01, 0.3, 1.0])
def test_the_choice_is_nearly_as_good_as_the_best_for_any_noise(noise: float, dense: SimpleNamespace) -> None:
    truth, halves = two_halves(dense, noise, seed=1)
    options = {"max_iterations": 3000, "tolerance": 1e-4}
    choice = choose_by_halves(*halves, REGULARISATIONS, **options)
    # Both halves together weigh twice as much as one.
    tried = [REGULARISATIONS[choice.chosen] / 2, *REGULARISATIONS]
    x = merge(halves[0] + halves[1], tried, **options).autocorrelations
    transforms = np.fft.fftn(x - truth, axes=(1, 2, 3))
    f = np.fft.fftfreq(9)
    measured = f[:, None, None] ** 2 + f[:, None] ** 2 + f**2 < 0.25
    error = np.linalg.norm(transforms[:, measured], axis=1)
    assert error[0] < 1.3 * error.min()


def test_more_noise_asks_for_more_regularisation(dense: SimpleNamespace) -> None:
    chosen = [
        choose_by_halves(*two_halves(dense, noise, seed=2)[1], REGULARISATIONS, max_iterations=3000).chosen
        for noise in (0.01, 1.0)
    ]
    assert chosen[0] < chosen[1]


def test_what_has_not_converged_is_not_chosen(dense: SimpleNamespace) -> None:
    _, halves = two_halves(dense, 0.3, seed=1)
    choice = choose_by_halves(*halves, [1e-9, 1e2], max_iterations=12)
    assert choice.predicted[0] == np.inf
    assert choice.chosen == 1
    with pytest.raises(OrienteerError, match="converged in both halves"):
        choose_by_halves(*halves, [1e-9, 1e-8], max_iterations=2)
