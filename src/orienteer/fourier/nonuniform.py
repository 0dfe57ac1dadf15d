"""Sums over a cube of voxels at any points, and their adjoints: non-uniform fast Fourier transforms in 3D.

The voxel with index i along an axis lies at v = i - n // 2, and a point u is given in periods per voxel: for
a wave vector q = 1/d (without 2 pi) and voxels of an edge a, u = a q.  With these, and with no other factor,

    to_points (type 2):  F_k = sum_v  x_v  exp(+2 pi i u_k . v)
    to_grid   (type 1):  X_v = sum_k  c_k  exp(-2 pi i u_k . v)

One is the adjoint of the other.  Since v is whole, whole periods may be added to a point along each axis.

At u = (1/4, 0, 0), a voxel of 1 at v = (1, 0, 0) gives exp(pi i / 2) = i, and three voxels of 1 along x add
up to 1; the adjoint gives the conjugate wave of a point.

>>> quarter = NonuniformTransform(3, np.array([[0.25, 0.0, 0.0]]), tolerance=1e-9)
>>> voxel = np.zeros((3, 3, 3))
>>> voxel[2, 1, 1] = 1.0
>>> complex(quarter.to_points(voxel)[0].round(6))
1j
>>> voxel[:, 1, 1] = 1.0
>>> float(quarter.to_points(voxel)[0].real.round(6))
1.0
>>> quarter.to_grid(np.array([2.0]))[2, 1, 1].round(6) + 0.0
np.complex128(-2j)
"""

from importlib import import_module
from typing import Any, Literal

import numpy as np

from orienteer.compute.arrays import Array, array_namespace, is_on_gpu
from orienteer.errors import DeviceError, OrienteerError

Precision = Literal["single", "double"]
_KINDS: dict[str, tuple[Any, Any]] = {
    "single": (np.float32, np.complex64),
    "double": (np.float64, np.complex128),
}
# Errors of the library of up to 2.6 times the requested tolerance have been seen.
_RESERVE = 3.0
# With its smaller internal grid, the library cannot reach less than this in single precision.
_LEAN_SINGLE = 1e-4


def least_tolerance(n: int, precision: Precision) -> float:
    """The smallest possible error: rounding a point changes the phase of voxels at the rim of the cube.

    >>> float(f"{least_tolerance(151, 'single'):.1e}"), float(f"{least_tolerance(151, 'double'):.1e}")
    (1.8e-05, 3.4e-14)
    """
    if precision not in _KINDS:
        raise OrienteerError(f"there is no precision {precision!r}.", "Use 'single' or 'double'.")
    return max(n, 16) * float(np.finfo(_KINDS[precision][0]).eps)


class NonuniformTransform:
    """Fourier sums between a cube of n^3 voxels and a list of M points, on the device of the points.

    n : voxels along an edge.
    points : (M, 3) in periods per voxel, NumPy or CuPy; they pick the device and are set once.
    tolerance : relative L2 error of the results.  For type 1 and values that cancel each other, it is
        relative to the result of their absolute values.
    precision : "single" (float32 and complex64, with half of the memory and time) or "double".

    Results add up over batches of points: on several threads or on a GPU the order of the additions, and with
    it the last digits, may change from call to call.
    """

    def __init__(
        self, n: int, points: Array, *, tolerance: float = 1e-6, precision: Precision = "double"
    ) -> None:
        if n < 1:
            raise OrienteerError(f"a cube of {n} voxels along its edge has nothing to transform.")
        least = least_tolerance(n, precision)
        if not least <= tolerance <= 0.1:
            raise OrienteerError(
                f"a tolerance of {tolerance:g} cannot be kept for {n}^3 voxels in {precision} precision; "
                f"it must lie between {least:.1g} and 0.1.",
                "Use double precision for smaller errors." if precision == "single" else "",
            )
        self.n, self.tolerance, self.precision = int(n), float(tolerance), precision
        self._real, self._complex = _KINDS[precision]
        self._xp = array_namespace(points)
        self._on_gpu = is_on_gpu(points)
        self._angles = self._checked_angles(points)
        self._plans: dict[tuple[int, int], Any] = {}

    @property
    def n_points(self) -> int:
        """M, points in the list."""
        return int(self._angles[0].shape[0])

    def to_points(self, volumes: Array) -> Array:
        """F_k = sum_v x_v exp(+2 pi i u_k.v) of one cube (n, n, n) or several (B, n, n, n).

        Returns (M,) or (B, M) complex.
        """
        cube = (self.n,) * 3
        return self._execute(2, self._checked(volumes, cube, "volumes"), (self.n_points,))

    def to_grid(self, values: Array) -> Array:
        """X_v = sum_k c_k exp(-2 pi i u_k.v) of one set of values (M,) or several (B, M).

        Returns (n, n, n) or (B, n, n, n) complex.
        """
        cube = (self.n,) * 3
        return self._execute(1, self._checked(values, (self.n_points,), "values"), cube)

    def _execute(self, kind: int, data: Array, shape: tuple[int, ...]) -> Array:
        batch = data.shape[: data.ndim - (3 if kind == 2 else 1)]
        if self.n_points == 0 or data.size == 0:
            return self._xp.zeros((*batch, *shape), dtype=self._complex)
        result = self._plan(kind, int(batch[0]) if batch else 1).execute(data)
        return result.reshape(*batch, *shape)

    def _plan(self, kind: int, n_transforms: int) -> Any:
        """The plan of the library for this number of transforms at a time, made on first use."""
        if (kind, n_transforms) not in self._plans:
            eps = max(self.tolerance / _RESERVE, float(np.finfo(self._real).eps))
            options: dict[str, Any] = {}
            if self.precision == "single" and eps < _LEAN_SINGLE:
                options["upsampfac"] = 2.0
            if self._on_gpu:
                library = import_cufinufft()
                options["gpu_stream"] = import_module("cupy").cuda.get_current_stream().ptr
            else:
                library = import_module("finufft")
            plan = library.Plan(
                kind, (self.n,) * 3, n_transforms, eps, 1 if kind == 2 else -1,
                np.dtype(self._complex).name, **options,
            )  # fmt: skip
            plan.setpts(*self._angles)
            self._plans[kind, n_transforms] = plan
        return self._plans[kind, n_transforms]

    def _checked_angles(self, points: Array) -> list[Array]:
        """2 pi u along each axis, within half a turn: there single precision has most digits."""
        xp = self._xp
        if points.ndim != 2 or points.shape[1] != 3:
            raise OrienteerError(f"the points have shape {tuple(points.shape)}; expected (M, 3).")
        if not bool(xp.isfinite(points).all()):
            raise OrienteerError("some of the points are not finite numbers.")
        angles = []
        for axis in range(3):
            u = points[:, axis].astype(xp.float64)
            angles.append(xp.ascontiguousarray((2 * np.pi * (u - xp.round(u))).astype(self._real)))
        return angles

    def _checked(self, array: Array, shape: tuple[int, ...], name: str) -> Array:
        if is_on_gpu(array) != self._on_gpu:
            raise OrienteerError(f"points and {name} must lie on the same device.")
        if tuple(array.shape[-len(shape) :]) != shape or array.ndim > len(shape) + 1:
            raise OrienteerError(
                f"{name} have shape {tuple(array.shape)}; expected {shape}, or several of them."
            )
        return self._xp.ascontiguousarray(array.astype(self._complex))


def import_cufinufft() -> Any:
    """The library of transforms on the GPU, or an error that says how to get it."""
    try:
        return import_module("cufinufft")
    except Exception as error:  # not installed, or built for another CUDA: it cannot be used either way
        raise DeviceError(
            f"non-uniform transforms on the GPU need cufinufft, which cannot be loaded ({error}).",
            "Install it with: pip install cufinufft; or use --device cpu.",
        ) from error
