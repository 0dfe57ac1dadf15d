"""SampledTransform: the transform of a compact object at any list of points, to a stated error."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, DeviceName, is_on_gpu, namespace_of_device, to_device
from orienteer.errors import OrienteerError
from orienteer.fourier.gridding import (
    CoarseGrid,
    CompactObject,
    FineGrid,
    check_memory,
    coarse_density,
    fine_grid,
    fine_size,
)
from orienteer.fourier.interpolate import interpolate_field, interpolate_intensity
from orienteer.fourier.interpolation_kernel import WIDTHS, InterpolationKernel, kernel_for_error

# A grid that stays in the last-level cache is read several times faster than one that does not.
_CACHE_BYTES = 64 * 2**20
# Rounding must not turn the outermost pixel into NaN; the grid has a spare cell on every side.
_Q_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class SampledTransform:
    """F(q) of a compact object for every q up to ``q_max_inv_A``: a type-2 NUFFT whose FFT is made once.

    The corrected grid (see ``gridding``) is interpolated with a few taps per axis (``interpolation_kernel``)
    at ``matrices[k] @ points[p]``.  Rotation, wavelength and size of the particle are all part of the
    matrix: for orientation R and Ewald vectors it is R^T / wavelength.

    A point beyond ``q_max_inv_A``, or one with NaN, gives NaN.

    grid : (m, m, m) complex64 on the CPU or the GPU; the results are on the same device.
    spacing_inv_A, centre : grid spacing, and index of q = 0.
    kernel : the interpolation kernel.
    q_max_inv_A : largest \\|q\\| that can be asked for.
    error : relative L2 error promised for fields and intensities over any set of points that covers many
        speckles.
    """

    grid: Array
    spacing_inv_A: float
    centre: int
    kernel: InterpolationKernel
    q_max_inv_A: float
    error: float

    @classmethod
    def from_particle(
        cls, particle: CompactObject, q_max_inv_A: float, photon_energy_eV: float | None = None, *,
        error: float = 1e-4, width: int | None = None, device: DeviceName = "cpu",
    ) -> Self:  # fmt: skip
        """The transform of a particle, in electrons, with anomalous terms when an energy is given.

        error : 1e-2 to 1e-6.
        width : taps per axis; by default the fewest whose grid stays small (fewer taps need a finer grid).
        """
        _check(error, q_max_inv_A)
        if not 0 <= particle.radius_A < np.inf:
            raise OrienteerError(f"the radius of the particle is {particle.radius_A:g} A; it must be finite.")
        radius = max(particle.radius_A, 0.5 / q_max_inv_A)
        kernel = _choose_kernel(error, width, 2 * radius * q_max_inv_A)
        coarse, dtype = CoarseGrid.chosen(radius, q_max_inv_A, error / 10), _precision(error)
        m = fine_size(coarse.box_A, 2 * radius, kernel, q_max_inv_A)
        check_memory(coarse.n_least, m, dtype.itemsize, radius, q_max_inv_A, from_object=True)
        density, voxel = coarse_density(particle, photon_energy_eV, q_max_inv_A, coarse)
        grid = fine_grid(density, voxel, 2 * radius, kernel, q_max_inv_A, dtype)
        return cls._of(grid, kernel, q_max_inv_A, error, device)

    @classmethod
    def from_density(
        cls, density: NDArray[Any], voxel_A: float, q_max_inv_A: float | None = None, *, error: float = 1e-4,
        width: int | None = None, device: DeviceName = "cpu",
    ) -> Self:  # fmt: skip
        """The transform of a density on voxels: F(q) = voxel^3 sum_v density_v exp(2 pi i q.r_v).

        density : (n, n, n) in electrons/A^3, real or complex, indexed [x, y, z] with its centre at n // 2.
        q_max_inv_A : by default the corner of the density's own frequency cube, sqrt(3) / (2 voxel).
        """
        density = np.asarray(density)
        if density.ndim != 3 or len(set(density.shape)) != 1 or density.size == 0:
            raise OrienteerError(f"the density has shape {density.shape}; expected a cube (n, n, n).")
        if density.dtype.kind not in "biufc" or not np.isfinite(density).all():
            raise OrienteerError("the density holds values that are not finite numbers.")
        if not 0 < voxel_A < np.inf:
            raise OrienteerError(f"the voxel is {voxel_A:g} A; it must be positive and finite.")
        q_max = q_max_inv_A if q_max_inv_A is not None else 3**0.5 / (2 * voxel_A)
        _check(error, q_max)
        diameter, dtype = len(density) * voxel_A, _precision(error)
        kernel = _choose_kernel(error, width, diameter * q_max)
        m = fine_size(diameter, diameter, kernel, q_max)
        check_memory(len(density), m, dtype.itemsize, diameter / 2, q_max, from_object=False)
        grid = fine_grid(density * voxel_A**3, voxel_A, diameter, kernel, q_max, dtype)
        return cls._of(grid, kernel, q_max, error, device)

    @classmethod
    def _of(
        cls, grid: FineGrid, kernel: InterpolationKernel, q_max: float, error: float, device: DeviceName
    ) -> Self:
        return cls(to_device(grid.values, device), grid.spacing_inv_A, grid.centre, kernel, q_max, error)

    @property
    def n_bytes(self) -> int:
        """Memory of the grid."""
        return int(self.grid.nbytes)

    def to(self, device: DeviceName) -> "SampledTransform":
        """The same transform with its grid in the memory of the device."""
        grid = to_device(self.grid, device)
        return SampledTransform(
            grid, self.spacing_inv_A, self.centre, self.kernel, self.q_max_inv_A, self.error
        )

    def field(self, points: Array, matrices: Array, *, order: Array | None = None) -> Array:
        """F at ``matrices[k] @ points[p]`` in the object's units: (K, P) complex64, on the grid's device.

        points : (P, 3) shared by all k, or (K, P, 3).
        matrices : (K, 3, 3) or (3, 3); their products with the points are in 1/A.
        order : (P,) int32 on the device, the order in which a GPU takes the points; the result is the same.
        """
        points, matrices, out = self._prepare(points, matrices, np.complex64, None)
        _check_order(order, out)
        interpolate_field(self.grid, self._coefficients, points, matrices, *self._frame(), out, order=order)
        return out

    def intensity(
        self, points: Array, matrices: Array, scale: Array | None = None, weights: Array | None = None,
        out: Array | None = None, *, add: bool = False, order: Array | None = None,
    ) -> Array:  # fmt: skip
        """weights[k] * scale[p] * \\|F\\|^2 at ``matrices[k] @ points[p]``: (K, P) float32.

        scale : (P,) or (K, P), for example solid angle and polarisation; 1 by default.
        weights : (K,), for example fluences; 1 by default.
        out : written when given; added to when ``add`` is true (a sum over spectral lines, say).
        """
        points, matrices, out = self._prepare(points, matrices, np.float32, out)
        _check_order(order, out)
        K, P = out.shape
        scale = self._array(np.ones(P) if scale is None else scale, np.float32)
        scale = scale[None] if scale.ndim == 1 else scale
        weights = self._array(np.ones(K) if weights is None else weights, np.float32)
        if scale.shape not in ((1, P), (K, P)) or weights.shape != (K,):
            raise OrienteerError(
                f"scale {scale.shape} and weights {weights.shape} do not fit {K} matrices and {P} points."
            )
        interpolate_intensity(
            self.grid, self._coefficients, points, matrices, *self._frame(), scale, weights, out,
            add=add, order=order,
        )  # fmt: skip
        return out

    def _frame(self) -> tuple[float, float]:
        """Origin and limit in cells, as the kernels need them."""
        origin = self.centre - self.kernel.width / 2 + 1
        return origin, float((self.q_max_inv_A / self.spacing_inv_A * (1 + _Q_TOLERANCE)) ** 2)

    @property
    def _device(self) -> DeviceName:
        return "cuda" if is_on_gpu(self.grid) else "cpu"

    @cached_property
    def _coefficients(self) -> Array:
        return self._array(self.kernel.coefficients, np.float32)

    def _array(self, values: Array, dtype: Any) -> Array:
        """The values on the grid's device, contiguous, as the kernels need them."""
        xp = namespace_of_device(self._device)
        return xp.ascontiguousarray(to_device(values, self._device), dtype=dtype)

    def _prepare(
        self, points: Array, matrices: Array, dtype: Any, out: Array | None
    ) -> tuple[Array, Array, Array]:
        points = self._array(points, np.float64)
        matrices = self._array(matrices, np.float64) / self.spacing_inv_A
        points = points[None] if points.ndim == 2 else points
        matrices = matrices[None] if matrices.ndim == 2 else matrices
        if points.ndim != 3 or points.shape[2] != 3 or matrices.ndim != 3 or matrices.shape[1:] != (3, 3):
            raise OrienteerError(
                f"points {points.shape} and matrices {matrices.shape} are not (P, 3) and (K, 3, 3)."
            )
        shape = (len(matrices), points.shape[1])
        if len(points) not in (1, len(matrices)):
            raise OrienteerError(f"there are {len(points)} lists of points for {len(matrices)} matrices.")
        if out is None:
            out = namespace_of_device(self._device).empty(shape, dtype)
        elif (
            out.shape != shape
            or out.dtype != dtype
            or is_on_gpu(out) != is_on_gpu(self.grid)
            or not out.flags.c_contiguous
        ):
            raise OrienteerError(
                f"out is {out.dtype}{out.shape}; expected contiguous {np.dtype(dtype)}{shape} on its device."
            )
        return points, matrices, out


def _check_order(order: Array | None, out: Array) -> None:
    if order is not None and (order.shape != out.shape[1:] or order.dtype != np.int32):
        raise OrienteerError(f"order is {order.dtype}{order.shape}; expected int32{out.shape[1:]}.")


def _choose_kernel(error: float, width: int | None, extent: float) -> InterpolationKernel:
    """The narrowest kernel whose grid fits in cache; ``extent`` is diameter times q_max, in speckles.

    Fields may have half of the error, because that of intensities is twice as large; four fifths of it are
    for the kernel.
    """
    if width is not None and width not in WIDTHS:
        raise OrienteerError(f"the width is {width} taps; it must be one of {', '.join(map(str, WIDTHS))}.")
    kernels: dict[int, InterpolationKernel] = {}
    sizes: dict[int, float] = {}
    for w in WIDTHS if width is None else [width]:
        if (kernel := kernel_for_error(w, 0.4 * error)) is not None:
            kernels[w], sizes[w] = kernel, 8 * (2 * extent * kernel.oversampling + w + 3) ** 3
            if sizes[w] <= _CACHE_BYTES:  # making wider ones would take long
                return kernel
    if not sizes:
        raise OrienteerError(
            f"no interpolation kernel of width {width} has an error of {error:g}.", "Give a larger width."
        )
    return kernels[min(sizes, key=lambda w: sizes[w] * w**3)]


def _precision(error: float) -> np.dtype[Any]:
    return np.dtype(np.complex128 if error < 1e-5 else np.complex64)


def _check(error: float, q_max: float) -> None:
    if not 1e-6 <= error <= 0.1:
        raise OrienteerError(
            f"the error {error:g} is outside the range that single precision allows (1e-6 to 0.1)."
        )
    if not 0 < q_max < np.inf:
        raise OrienteerError(f"q_max is {q_max:g} 1/A; it must be positive and finite.")
