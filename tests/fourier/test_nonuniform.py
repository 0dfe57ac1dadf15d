"""Non-uniform transforms against direct sums in float64, and against each other."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orienteer.compute.arrays import to_device, to_numpy
from orienteer.errors import DeviceError, OrienteerError
from orienteer.fourier import nonuniform
from orienteer.fourier.nonuniform import NonuniformTransform, least_tolerance


def waves(n: int, points: np.ndarray) -> np.ndarray:
    """exp(+2 pi i u_k.v), (M, n^3) complex128."""
    v = np.arange(n) - n // 2
    voxels = np.stack(np.meshgrid(v, v, v, indexing="ij"), -1).reshape(-1, 3)
    return np.exp(2j * np.pi * points @ voxels.T)


def relative_error(found: Any, wanted: np.ndarray) -> float:
    return float(np.linalg.norm(to_numpy(found) - wanted) / np.linalg.norm(wanted))


def random_problem(n: int, n_points: int, seed: int = 1, reach: float = 0.5) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    points = rng.uniform(-reach, reach, (n_points, 3))
    volume = rng.standard_normal((n, n, n)) + 1j * rng.standard_normal((n, n, n))
    values = rng.standard_normal(n_points) + 1j * rng.standard_normal(n_points)
    return points, volume, values


@pytest.mark.parametrize("n", [1, 8, 13])
@pytest.mark.parametrize(
    ("precision", "tolerance"),
    [("single", 1e-2), ("single", 1e-3), ("single", 1e-5), ("double", 1e-6), ("double", 1e-12)],
)
def test_both_transforms_keep_the_tolerance_against_direct_sums(
    n: int, precision: Any, tolerance: float
) -> None:
    points, volume, values = random_problem(n, 200)
    direct = waves(n, points)
    transform = NonuniformTransform(n, points, tolerance=tolerance, precision=precision)
    forward, back = transform.to_points(volume), transform.to_grid(values)
    assert forward.dtype == back.dtype == (np.complex64 if precision == "single" else np.complex128)
    assert relative_error(forward, direct @ volume.ravel()) < tolerance
    assert relative_error(back.ravel(), direct.conj().T @ values) < tolerance


def test_a_tighter_tolerance_is_really_used() -> None:
    points, volume, _ = random_problem(9, 100)
    direct = waves(9, points) @ volume.ravel()
    loose, tight = (
        relative_error(NonuniformTransform(9, points, tolerance=t).to_points(volume), direct)
        for t in (1e-2, 1e-10)
    )
    assert loose > 1e-6 > 1e-9 > tight


def test_the_scale_is_the_plain_sum() -> None:
    transform = NonuniformTransform(6, np.zeros((5, 3)), tolerance=1e-9)
    assert transform.to_points(np.ones((6, 6, 6))) == pytest.approx(np.full(5, 216.0))
    assert transform.to_grid(np.ones(5)) == pytest.approx(np.full((6, 6, 6), 5.0))


@settings(max_examples=20, deadline=None)
@given(n=st.integers(1, 12), n_points=st.integers(1, 60), seed=st.integers(0, 10**6))
def test_to_grid_is_the_adjoint_of_to_points(n: int, n_points: int, seed: int) -> None:
    points, volume, values = random_problem(n, n_points, seed, reach=2.0)
    transform = NonuniformTransform(n, points, tolerance=1e-9)
    left = np.vdot(values, transform.to_points(volume))
    right = np.vdot(transform.to_grid(values), volume)
    scale = np.linalg.norm(values) * np.linalg.norm(volume) * np.sqrt(n_points * n**3)
    assert abs(left - right) < 1e-9 * scale


def test_points_may_move_by_whole_periods() -> None:
    points, volume, _ = random_problem(7, 30)
    moved = points + np.random.default_rng(2).integers(-40, 40, points.shape)
    near, far = (NonuniformTransform(7, p, tolerance=1e-9).to_points(volume) for p in (points, moved))
    assert relative_error(far, near) < 1e-9


def test_batches_give_what_single_transforms_give() -> None:
    points, volume, values = random_problem(6, 40)
    transform = NonuniformTransform(6, points, tolerance=1e-9)
    volumes, lists = np.stack([volume, 2j * volume, volume**2]), np.stack([values, values**2])
    assert transform.to_points(volumes) == pytest.approx(
        np.stack([transform.to_points(v) for v in volumes]), rel=1e-8
    )
    assert transform.to_grid(lists) == pytest.approx(
        np.stack([transform.to_grid(v) for v in lists]), rel=1e-8, abs=1e-8
    )


def test_sums_over_parts_of_the_points_add_up() -> None:
    points, _, values = random_problem(6, 50)
    whole = NonuniformTransform(6, points, tolerance=1e-10).to_grid(values)
    parts = [
        NonuniformTransform(6, points[part], tolerance=1e-10).to_grid(values[part])
        for part in (slice(0, 17), slice(17, 50))
    ]
    assert relative_error(parts[0] + parts[1], whole) < 1e-9


def test_no_points_and_no_volumes_are_no_trouble() -> None:
    transform = NonuniformTransform(4, np.zeros((0, 3)))
    assert transform.to_points(np.ones((4, 4, 4))).shape == (0,)
    assert not transform.to_grid(np.zeros(0)).any()
    assert NonuniformTransform(4, np.zeros((3, 3))).to_points(np.ones((0, 4, 4, 4))).shape == (0, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "nothing to transform"),
        ({"tolerance": 1e-9, "precision": "single"}, "cannot be kept"),
        ({"tolerance": 1e-20}, "cannot be kept"),
        ({"tolerance": float("nan")}, "cannot be kept"),
        ({"precision": "half"}, "no precision"),
        ({"points": np.zeros((4, 2))}, "expected \\(M, 3\\)"),
        ({"points": np.full((4, 3), np.nan)}, "not finite"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    given_ones: dict[str, Any] = {"n": 5, "points": np.zeros((4, 3)), **arguments}
    with pytest.raises(OrienteerError, match=message):
        NonuniformTransform(**given_ones)


def test_arrays_of_a_wrong_shape_are_refused() -> None:
    transform = NonuniformTransform(5, np.zeros((4, 3)))
    with pytest.raises(OrienteerError, match="volumes have shape"):
        transform.to_points(np.ones((4, 5, 5)))
    with pytest.raises(OrienteerError, match="values have shape"):
        transform.to_grid(np.ones((2, 2, 4)))


def test_a_missing_gpu_library_is_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(nonuniform, "import_module", missing)
    with pytest.raises(DeviceError, match=r"need cufinufft.*\n.*pip install cufinufft"):
        nonuniform.import_cufinufft()


@pytest.mark.slow
def test_single_precision_keeps_its_least_tolerance_in_a_large_cube() -> None:
    points, volume, values = random_problem(81, 50)
    tolerance = least_tolerance(81, "single")
    transform = NonuniformTransform(81, points, tolerance=tolerance, precision="single")
    direct = waves(81, points)
    assert relative_error(transform.to_points(volume), direct @ volume.ravel()) < tolerance
    assert relative_error(transform.to_grid(values).ravel(), direct.conj().T @ values) < tolerance


@pytest.mark.gpu
@pytest.mark.parametrize(("precision", "tolerance"), [("single", 1e-3), ("single", 1e-5), ("double", 1e-9)])
def test_the_gpu_keeps_the_tolerance_and_the_conventions(precision: Any, tolerance: float) -> None:
    pytest.importorskip("cufinufft")
    points, volume, values = random_problem(12, 300, reach=3.0)
    direct = waves(12, points)
    transform = NonuniformTransform(12, to_device(points, "cuda"), tolerance=tolerance, precision=precision)
    volumes = to_device(np.stack([volume, 2 * volume]), "cuda")
    forward, back = transform.to_points(volumes), transform.to_grid(to_device(values, "cuda"))
    assert relative_error(forward[1], 2 * direct @ volume.ravel()) < tolerance
    assert relative_error(back.ravel(), direct.conj().T @ values) < tolerance
