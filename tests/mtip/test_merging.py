"""Merged autocorrelations against explicit least squares and against the object that made the frames."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from orienteer.compute.arrays import to_device, to_numpy
from orienteer.errors import OrienteerError
from orienteer.mtip.merging import merge, misfit
from orienteer.mtip.normal_equations import NormalEquations
from orienteer.mtip.support import autocorrelation_support
from orienteer.mtip.toeplitz import beyond

VOXEL_A = 7.0
Q_MAX = 0.5 / VOXEL_A


def random_problem(dense: Any, n: int, seed: int = 0) -> SimpleNamespace:
    rng = np.random.default_rng(seed)
    points, matrices = dense.ewald_points(5, 0.8 * Q_MAX), dense.random_turns(14, seed)
    frames, weights = rng.random((14, 25)) * 10, rng.random((14, 25))
    fluence, start = rng.uniform(0.5, 2, 14), rng.random((n, n, n))
    start += np.roll(start[::-1, ::-1, ::-1], (1 - n % 2,) * 3, (0, 1, 2))  # even, as autocorrelations are
    equations = NormalEquations.empty(n, VOXEL_A).with_frames(
        frames, points, matrices, weights=weights, fluence=fluence, tolerance=1e-11
    )
    A = np.repeat(fluence, 25)[:, None] * dense.intensity_matrix(n, VOXEL_A, dense.turned(points, matrices))
    return SimpleNamespace(
        equations=equations, A=A, w=weights.ravel(), b=frames.ravel(), start=start
    )  # fmt: skip


def outside_rows(dense: Any, n: int, m: int, radius: float) -> np.ndarray:
    """Rows of the transform with m^3 frequencies that lie beyond a radius; |rows x|^2 is a share of |x|^2."""
    f = np.fft.fftfreq(m)
    all_f = np.stack(np.meshgrid(f, f, f, indexing="ij"), -1).reshape(-1, 3)
    far = all_f[(all_f**2).sum(1) > radius**2 * (1 + 1e-9)]
    return np.exp(-2j * np.pi * far @ dense.voxels(n).T) / m**1.5


@pytest.mark.parametrize("n", [6, 7])
@pytest.mark.parametrize("outside", [0.0, 0.3])
@pytest.mark.parametrize("effort", ["double", "mixed"])
@pytest.mark.parametrize("is_graded", [False, True])
def test_the_solution_is_that_of_explicit_least_squares(
    n: int, outside: float, effort: Any, is_graded: bool, dense: SimpleNamespace
) -> None:
    """min |sqrt(w) (A x - b)|^2 + lambda |(x - x0) / s|^2 + outside |F x|^2, solved as one matrix."""
    problem = random_problem(dense, n)
    regularisations = [1e-3, 1e-2, 0.3]
    support = autocorrelation_support(n, 1.0, 2.9)
    square = (dense.voxels(n) ** 2).sum(1).reshape(support.shape)
    spread = support / (1 + square * is_graded)
    merged = merge(
        problem.equations, regularisations, outside=outside, support=spread, start=problem.start,
        tolerance=1e-10, max_iterations=5000, effort=effort,
    )  # fmt: skip
    assert merged.solver.converged.all()
    unit = (problem.w * np.abs(problem.A[:, 0]) ** 2).sum()
    m = 12 if n == 6 else 15
    far = outside_rows(dense, n, m, problem.equations.q_max_inv_A * VOXEL_A)
    inside = support.ravel()
    x0 = problem.start.ravel() * inside
    for relative, found, cost in zip(regularisations, merged.autocorrelations, merged.misfits, strict=True):
        blocks = [
            np.sqrt(problem.w)[:, None] * problem.A,
            np.sqrt(outside * unit) * far,
            np.sqrt(relative * unit) * np.diag(1 / np.where(inside, spread.ravel(), 1)),
        ]
        rows = np.concatenate(blocks)[:, inside]
        sides = [
            np.sqrt(problem.w) * problem.b,
            np.zeros(len(far)),
            np.sqrt(relative * unit) * x0 / np.where(inside, spread.ravel(), 1),
        ]
        side = np.concatenate(sides)
        wanted = np.linalg.lstsq(
            np.concatenate([rows.real, rows.imag]), np.concatenate([side, 0 * side]), rcond=None
        )[0]
        assert np.linalg.norm(found.ravel()[inside] - wanted) < 1e-6 * np.linalg.norm(wanted)
        assert not found.ravel()[~inside].any()
        residual = (rows @ wanted - side)[: -(n**3)]
        assert cost == pytest.approx((np.abs(residual) ** 2).sum(), rel=1e-6)


def test_the_merge_is_even_and_no_smaller_for_more_frames(dense: SimpleNamespace) -> None:
    """Twice the same data, or weights twice as large: regularisations are relative, nothing changes."""
    problem = random_problem(dense, 6)
    once = merge(problem.equations, [1e-2], tolerance=1e-9, max_iterations=2000).autocorrelation
    twice = merge(
        problem.equations + problem.equations, [1e-2], tolerance=1e-9, max_iterations=2000
    ).autocorrelation
    assert twice == pytest.approx(once, abs=1e-6 * np.abs(once).max())
    inner = once[1:, 1:, 1:]
    assert inner == pytest.approx(inner[::-1, ::-1, ::-1], abs=1e-6 * np.abs(once).max())
    assert not once[0].any()


@pytest.mark.parametrize(("n", "effort"), [(9, "double"), (9, "mixed"), (12, "mixed"), (15, "mixed")])
def test_frames_without_noise_give_the_object_back(n: int, effort: Any, dense: SimpleNamespace) -> None:
    """In boxes that are just large enough, and in larger ones: the particle does not care."""
    truth = dense.small_autocorrelation(9, radius=2)
    points, matrices = dense.ewald_points(14, Q_MAX), dense.random_turns(60)
    q = dense.turned(points, matrices)
    fluence = np.random.default_rng(1).uniform(0.5, 2, 60)
    values = (dense.intensity_matrix(9, VOXEL_A, q) @ truth.ravel()).real
    frames = fluence[:, None] * values.reshape(60, -1)
    equations = NormalEquations.empty(n, VOXEL_A).with_frames(
        frames, points, matrices, fluence=fluence, tolerance=1e-10
    )
    support = autocorrelation_support(n, VOXEL_A, 4 * VOXEL_A)
    merged = merge(
        equations, np.geomspace(1e-9, 1e-3, 7), support=support, tolerance=1e-9, max_iterations=2000,
        effort=effort,
    )  # fmt: skip
    assert merged.curve.chosen == 0  # nothing to be smoothed
    x = merged.autocorrelation
    rng = np.random.default_rng(2)
    fresh = rng.standard_normal((300, 3))
    fresh *= (Q_MAX * rng.random(300) ** (1 / 3) / np.linalg.norm(fresh, axis=1))[:, None]
    wanted = dense.intensity_matrix(9, VOXEL_A, fresh) @ truth.ravel()
    found = dense.intensity_matrix(n, VOXEL_A, fresh) @ x.ravel()
    assert np.linalg.norm(found - wanted) < 1e-4 * np.linalg.norm(wanted)
    first = n // 2 - 4
    middle = (slice(first, first + 9),) * 3
    assert x[middle] == pytest.approx(truth, abs=1e-4)


def test_the_start_is_kept_where_nothing_is_measured(dense: SimpleNamespace) -> None:
    """Frames that end at half of the voxels' frequencies, and a start that is right."""
    truth = dense.small_autocorrelation(9, radius=2)
    points, matrices = dense.ewald_points(8, 0.5 * Q_MAX), dense.random_turns(20)
    values = (dense.intensity_matrix(9, VOXEL_A, dense.turned(points, matrices)) @ truth.ravel()).real
    equations = NormalEquations.empty(9, VOXEL_A).with_frames(
        values.reshape(20, -1), points, matrices, tolerance=1e-10
    )
    merged = merge(equations, [1e-4], start=truth, tolerance=1e-8)
    assert merged.autocorrelation == pytest.approx(truth, abs=1e-6)
    without = merge(equations, [1e-4], tolerance=1e-8, max_iterations=1000)
    assert np.abs(without.autocorrelation - truth).max() > 1e-2


def test_the_penalty_keeps_unmeasured_frequencies_down(dense: SimpleNamespace) -> None:
    truth = dense.small_autocorrelation(9, radius=2)
    points, matrices = dense.ewald_points(8, 0.6 * Q_MAX), dense.random_turns(20)
    values = (dense.intensity_matrix(9, VOXEL_A, dense.turned(points, matrices)) @ truth.ravel()).real
    equations = NormalEquations.empty(9, VOXEL_A).with_frames(values.reshape(20, -1), points, matrices)
    power = []
    for outside in (0.0, 1e2):
        x = merge(
            equations, [1e-5], outside=outside, support=autocorrelation_support(9, 1.0, 4.0),
            max_iterations=3000,
        ).autocorrelation  # fmt: skip
        transform = np.abs(np.fft.rfftn(x, s=(18, 18, 18), axes=(0, 1, 2))) ** 2
        power.append(transform[beyond(18, 0.3)].sum() / transform.sum())
    assert power[1] < 0.05 * power[0]


def test_the_misfit_of_other_frames_needs_no_frames(dense: SimpleNamespace) -> None:
    problem, other = random_problem(dense, 6, 0), random_problem(dense, 6, 1)
    x = merge(problem.equations, [1e-2]).autocorrelation
    wanted = (other.w * np.abs(other.A @ x.ravel() - other.b) ** 2).sum()
    assert misfit(other.equations, x) == pytest.approx(wanted, rel=1e-8)


@pytest.mark.parametrize("noise", [0.1, 0.3, 1.0])
def test_noise_makes_the_curve_choose_a_regularisation_that_pays(
    noise: float, dense: SimpleNamespace
) -> None:
    """Few frames with noise: the chosen one is nearly as near to the truth as the best."""
    truth = dense.small_autocorrelation(9, radius=2)
    points, matrices = dense.ewald_points(14, Q_MAX), dense.random_turns(12)
    clean = (dense.intensity_matrix(9, VOXEL_A, dense.turned(points, matrices)) @ truth.ravel()).real
    errors = np.random.default_rng(3).standard_normal(clean.size) * noise * np.std(clean)
    equations = NormalEquations.empty(9, VOXEL_A).with_frames(
        (clean + errors).reshape(12, -1), points, matrices
    )
    merged = merge(equations, np.geomspace(1e-6, 1e1, 22), max_iterations=2000)
    distance = np.array([np.linalg.norm(x - truth) for x in merged.autocorrelations])
    assert merged.curve.reason == "corner"
    assert distance[merged.curve.chosen] < 1.5 * distance.min()
    assert distance[merged.curve.chosen] < 0.7 * distance[0]


def test_what_cannot_be_merged_is_refused(dense: SimpleNamespace) -> None:
    with pytest.raises(OrienteerError, match="nothing to merge"):
        merge(NormalEquations.empty(5, 1.0), [0.1])
    equations = random_problem(dense, 6).equations
    lopsided = autocorrelation_support(6)
    lopsided[1, 2, 3] = False
    with pytest.raises(OrienteerError, match="must be even"):
        merge(equations, [0.1], support=lopsided)
    with pytest.raises(OrienteerError, match="must be even"):
        merge(equations, [0.1], support=np.ones((6, 6, 6), bool))
    with pytest.raises(OrienteerError, match="start must be finite"):
        merge(equations, [0.1], start=np.full((6, 6, 6), np.nan))
    with pytest.raises(OrienteerError, match="no effort"):
        merge(equations, [0.1], effort="half")  # type: ignore[arg-type]
    with pytest.raises(OrienteerError, match="no box"):
        autocorrelation_support(1)
    with pytest.raises(OrienteerError, match="diameter"):
        autocorrelation_support(5, 1.0, 0.0)


@pytest.mark.gpu
def test_the_gpu_merges_the_same(dense: SimpleNamespace) -> None:
    pytest.importorskip("cufinufft")
    problem = random_problem(dense, 7)
    here = merge(problem.equations, [1e-3, 1e-1], outside=0.1, tolerance=1e-9, max_iterations=3000)
    equations = problem.equations
    there = merge(
        NormalEquations(
            to_device(equations.kernel, "cuda"), to_device(equations.right_side, "cuda"), VOXEL_A,
            equations.data_square, equations.n_values, equations.q_max_inv_A,
        ),
        [1e-3, 1e-1], outside=0.1, tolerance=1e-9, max_iterations=3000,
    )  # fmt: skip
    found = to_numpy(there.autocorrelations)
    assert np.linalg.norm(found - here.autocorrelations) < 1e-6 * np.linalg.norm(here.autocorrelations)
