"""Sums over frames against explicit matrices."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from orienteer.compute.arrays import to_device, to_numpy
from orienteer.errors import OrienteerError
from orienteer.fourier.nonuniform import NonuniformTransform
from orienteer.mtip.normal_equations import NormalEquations

VOXEL_A = 7.0
Q_MAX = 0.5 / VOXEL_A


@pytest.fixture
def problem(dense: SimpleNamespace) -> SimpleNamespace:
    """12 frames of 25 pixels with weights and fluences that have nothing to do with each other."""
    rng = np.random.default_rng(3)
    points, matrices = dense.ewald_points(5, Q_MAX), dense.random_turns(12)
    return SimpleNamespace(
        points=points, matrices=matrices, frames=rng.random((12, 25)) * 40, weights=rng.random((12, 25)),
        fluence=rng.uniform(0.2, 3, 12), q=dense.turned(points, matrices),
    )  # fmt: skip


def sums(problem: SimpleNamespace, n: int, part: Any = slice(None), **options: Any) -> NormalEquations:
    return NormalEquations.empty(n, VOXEL_A).with_frames(
        problem.frames[part], problem.points, problem.matrices[part], weights=problem.weights[part],
        fluence=problem.fluence[part], **{"tolerance": 1e-11, **options},
    )  # fmt: skip


@pytest.mark.parametrize("n", [6, 7])
def test_kernel_and_right_side_are_those_of_the_explicit_matrix(
    n: int, dense: SimpleNamespace, problem: SimpleNamespace
) -> None:
    equations = sums(problem, n)
    A = np.repeat(problem.fluence, 25)[:, None] * dense.intensity_matrix(n, VOXEL_A, problem.q)
    w, b = problem.weights.ravel(), problem.frames.ravel()
    v = dense.voxels(n)
    d = tuple(np.moveaxis(v[:, None] - v[None], -1, 0) + n - 1)
    normal = (A.conj().T * w) @ A
    assert equations.kernel[d] == pytest.approx(normal.real, rel=1e-9, abs=1e-9 * np.abs(normal).max())
    right = (A.conj().T @ (w * b)).real
    assert equations.right_side.ravel() == pytest.approx(right, rel=1e-9, abs=1e-9 * np.abs(right).max())
    assert equations.data_square == pytest.approx((w * b**2).sum())
    assert equations.total_weight == pytest.approx(normal[0, 0].real)
    assert equations.n_values == 300
    assert equations.q_max_inv_A == pytest.approx(Q_MAX)


def test_batches_halves_and_ranks_add_up(problem: SimpleNamespace) -> None:
    whole = sums(problem, 6)
    halves = sums(problem, 6, slice(0, None, 2)) + sums(problem, 6, slice(1, None, 2))
    in_batches = sums(problem, 6, points_at_once=60)  # two frames at a time
    for other in (halves, in_batches):
        assert other.kernel == pytest.approx(whole.kernel, abs=1e-9 * whole.total_weight)
        assert other.right_side == pytest.approx(whole.right_side, rel=1e-8, abs=1e-6)
        assert other.data_square == pytest.approx(whole.data_square)
        assert other.n_values == whole.n_values
        assert other.q_max_inv_A == pytest.approx(whole.q_max_inv_A)


def test_a_pixel_without_weight_may_hold_anything(
    problem: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the last bit in what is transformed; the transform itself rounds as its threads and memory are."""
    transformed: list[np.ndarray] = []
    to_grid = NonuniformTransform.to_grid

    def noted(self: NonuniformTransform, values: np.ndarray) -> np.ndarray:
        transformed.append(values.copy())
        return to_grid(self, values)

    monkeypatch.setattr(NonuniformTransform, "to_grid", noted)
    problem.weights[:, 4] = 0
    clean = sums(problem, 6)
    n_calls = len(transformed)
    problem.frames[:, 4] = np.nan
    dirty = sums(problem, 6)
    assert len(transformed) == 2 * n_calls > 0
    for before, after in zip(transformed[:n_calls], transformed[n_calls:], strict=True):
        assert np.array_equal(after, before)
    assert dirty.right_side == pytest.approx(clean.right_side, rel=1e-10, abs=1e-8)
    assert dirty.n_values == 288


def test_weights_by_pixel_and_by_frame_spread_over_the_frames(problem: SimpleNamespace) -> None:
    by_pixel, by_frame = problem.weights[0], problem.weights[:, :1]
    for few in (by_pixel, by_frame):
        problem.weights = np.broadcast_to(few, (12, 25))
        full = sums(problem, 6)
        few_given = NormalEquations.empty(6, VOXEL_A).with_frames(
            problem.frames, problem.points, problem.matrices, weights=few, fluence=problem.fluence,
            tolerance=1e-11, points_at_once=50,
        )  # fmt: skip
        assert few_given.right_side == pytest.approx(full.right_side, rel=1e-8, abs=1e-6)


def test_weak_data_do_not_drown_in_the_error_of_the_weights(problem: SimpleNamespace) -> None:
    """Both sums come from one transform, whatever their units."""
    right = sums(problem, 6, tolerance=1e-6).right_side
    problem.frames = problem.frames * 1e-9
    assert sums(problem, 6, tolerance=1e-6).right_side * 1e9 == pytest.approx(right, rel=1e-9)


def test_single_precision_keeps_its_tolerance(problem: SimpleNamespace) -> None:
    exact, quick = sums(problem, 7), sums(problem, 7, tolerance=1e-4, precision="single")
    for name in ("kernel", "right_side"):
        wanted, found = getattr(exact, name), getattr(quick, name)
        assert found.dtype == np.float64
        assert np.linalg.norm(found - wanted) < 1e-4 * np.linalg.norm(wanted)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"points": np.zeros((24, 3))}, "are not \\(K, P\\)"),
        ({"weights": np.ones((3, 25))}, "do not fit"),
        ({"weights": -np.ones((12, 25))}, "not negative"),
        ({"fluence": np.full(12, np.nan)}, "fluence must be"),
        ({"fluence": np.ones(3)}, "fluence must be"),
        ({"frames": np.full((12, 25), np.inf)}, "not finite"),
        ({"points": np.full((25, 3), 0.6 / VOXEL_A)}, "Use voxels of 0.48"),
    ],
)
def test_what_does_not_fit_is_refused(problem: SimpleNamespace, change: dict[str, Any], message: str) -> None:
    problem.__dict__.update(change)
    if "points" in change and len(change["points"]) == 25:
        message = "voxels of 7 A hold only up to"
    with pytest.raises(OrienteerError, match=message):
        sums(problem, 6)


@pytest.mark.parametrize(("precision", "tolerance"), [("single", 1e-7), ("double", 1e-18), ("double", 0.5)])
def test_a_tolerance_that_cannot_be_kept_is_refused(
    problem: SimpleNamespace, precision: Any, tolerance: float
) -> None:
    with pytest.raises(OrienteerError, match="cannot keep a tolerance"):
        sums(problem, 6, precision=precision, tolerance=tolerance)


def test_sums_of_different_boxes_do_not_add() -> None:
    with pytest.raises(OrienteerError, match="cannot be added"):
        NormalEquations.empty(6, 1.0) + NormalEquations.empty(7, 1.0)
    with pytest.raises(OrienteerError, match="cannot be added"):
        NormalEquations.empty(6, 1.0) + NormalEquations.empty(6, 1.1)
    with pytest.raises(OrienteerError, match="too small"):
        NormalEquations.empty(1, 1.0)
    with pytest.raises(OrienteerError, match="positive and finite"):
        NormalEquations.empty(5, 0.0)


def test_no_frames_change_nothing(problem: SimpleNamespace) -> None:
    same = sums(problem, 6, slice(0, 0))
    assert same.n_values == 0
    assert not same.kernel.any()


@pytest.mark.gpu
def test_the_gpu_makes_the_same_sums(problem: SimpleNamespace) -> None:
    pytest.importorskip("cufinufft")
    wanted = sums(problem, 7)
    found = NormalEquations.empty(7, VOXEL_A, "cuda").with_frames(
        *(to_device(a, "cuda") for a in (problem.frames, problem.points, problem.matrices)),
        weights=to_device(problem.weights, "cuda"), fluence=to_device(problem.fluence, "cuda"),
        tolerance=1e-10, points_at_once=100,
    )  # fmt: skip
    for name in ("kernel", "right_side"):
        exact, other = getattr(wanted, name), to_numpy(getattr(found, name))
        assert np.linalg.norm(other - exact) < 1e-9 * np.linalg.norm(exact)
    assert found.data_square == pytest.approx(wanted.data_square)
