"""Intensities of an autocorrelation on rotated points: exactly, or quickly to a stated error.

    I(q) = sum_v  A_v  cos(2 pi q . r_v)        r_v = voxel_A (index - n // 2), q = 1/d

An intensity is real and the same at q and -q, whatever A is: only the even part of A enters.  There is no
other factor, so slices of a merged autocorrelation are in the unit of the frames at fluence 1.

``slice_exactly`` makes a non-uniform transform for every list of points.  Its error is relative to all
intensities together, and those near q = 0 are by far the largest: choose a small one if the weak intensities
far out matter.  The loop of M-TIP slices the intensity on a grid instead (``relative_grid.py``); tests hold
that against this.  ``IntensitySlicer`` transforms A once, to a finer grid, and interpolates any number of
slices from it with a few taps.  Interpolation is local, so its error holds in each shell by itself, within a
factor of two, as long as the intensity does not fall by decades over one speckle.
"""

from dataclasses import dataclass
from math import ceil
from typing import Any, Self

import numpy as np

from orienteer.compute.arrays import Array, array_namespace, is_on_gpu
from orienteer.compute.machine import usable_cores
from orienteer.errors import OrienteerError
from orienteer.fourier.interpolation_kernel import WIDTHS, InterpolationKernel, kernel_for_error
from orienteer.fourier.nonuniform import NonuniformTransform, Precision
from orienteer.fourier.sampled_transform import SampledTransform

# Points that are transformed together.
_POINTS_AT_ONCE = {"cpu": 2**23, "cuda": 2**26}
# Share of the error that interpolation may take; the rest is for rounding.
_SHARE = 0.8


def slice_exactly(
    autocorrelation: Array, voxel_A: float, points_inv_A: Array, matrices: Array, *,
    tolerance: float = 1e-9, precision: Precision = "double", points_at_once: int = 0,
) -> Array:  # fmt: skip
    """Intensities at ``matrices[k] @ points[p]``: (K, P) float64, or float32 in single precision.

    autocorrelation : (n, n, n) real, centre at n // 2; NumPy or CuPy.
    points_inv_A : (P, 3) scattering vectors of the pixels.
    matrices : (K, 3, 3), the transposes of the rotations of the particle.
    tolerance : relative L2 error over all points.
    points_at_once : points that are transformed together; 0: as many as suit the device.

    >>> A = np.zeros((5, 5, 5))
    >>> A[1, 2, 2] = A[3, 2, 2] = 0.5
    >>> slice_exactly(A, 10.0, np.array([[0, 0, 0], [0.05, 0, 0]]), np.eye(3)[None]).round(6)
    array([[ 1., -1.]])
    """
    _check_cube(autocorrelation, voxel_A, several=False)
    xp = array_namespace(autocorrelation)
    points, matrices = xp.asarray(points_inv_A, dtype=xp.float64), xp.asarray(matrices, dtype=xp.float64)
    if points.ndim != 2 or points.shape[1] != 3 or matrices.ndim != 3 or matrices.shape[1:] != (3, 3):
        raise OrienteerError(
            f"points {tuple(points.shape)} and matrices {tuple(matrices.shape)} are not (P, 3), (K, 3, 3)."
        )
    K, P = len(matrices), len(points)
    out = xp.empty((K, P), dtype=xp.float32 if precision == "single" else xp.float64)
    size = points_at_once or _POINTS_AT_ONCE["cuda" if is_on_gpu(autocorrelation) else "cpu"]
    rows = max(1, size // max(P, 1))
    for first in range(0, K, rows):
        part = slice(first, first + rows)
        q = (points[None] @ xp.swapaxes(matrices[part], 1, 2)).reshape(-1, 3)
        transform = NonuniformTransform(
            len(autocorrelation), q * voxel_A, tolerance=tolerance, precision=precision
        )
        out[part] = transform.to_points(autocorrelation).real.reshape(-1, P)
    return out


@dataclass(frozen=True, eq=False)
class IntensitySlicer:
    """Slices of one autocorrelation, or of two at the cost of one, by interpolation.

    transform : the finer grid and its kernel.  The grid is complex and intensities are real, so its imaginary
        part can hold those of a second autocorrelation, for example that of the other half set.
    n_models : 1 or 2.
    """

    transform: SampledTransform
    n_models: int

    @classmethod
    def of(
        cls, autocorrelations: Array, voxel_A: float, q_max_inv_A: float | None = None, *,
        error: float = 1e-3, width: int | None = None,
    ) -> Self:  # fmt: skip
        """Transform one autocorrelation (n, n, n), or two (2, n, n, n), on their device.

        q_max_inv_A : largest \\|q\\| of any slice; by default 1 / (2 voxel_A), the most that voxels can hold.
        error : relative L2 error of intensities over any set of many points, 1e-6 to 0.1.
        width : taps per axis; by default the width with the smallest product of grid and taps.
        """
        _check_cube(autocorrelations, voxel_A, several=True)
        q_max = 0.5 / voxel_A if q_max_inv_A is None else q_max_inv_A
        if not 0 < q_max * voxel_A <= 0.5 * (1 + 1e-6):
            raise OrienteerError(
                f"voxels of {voxel_A:g} A reach {0.5 / voxel_A:.4g} 1/A; {q_max:.4g} 1/A cannot be sliced."
            )
        if not 1e-6 <= error <= 0.1:
            raise OrienteerError(f"the error is {error:g}; it must lie between 1e-6 and 0.1.")
        kernel = _choose_kernel(_SHARE * error, width)
        models = autocorrelations if autocorrelations.ndim == 4 else autocorrelations[None]
        grid, spacing, centre = _fine_grid(models, voxel_A, kernel, q_max)
        return cls(SampledTransform(grid, spacing, centre, kernel, float(q_max), error), len(models))

    def __call__(self, points_inv_A: Array, matrices: Array, *, order: Array | None = None) -> Array:
        """Intensities at ``matrices[k] @ points[p]``: (K, P) float32, or (2, K, P) of two models.

        Points beyond q_max are NaN.
        order : (P,) int32, the order in which a GPU takes the points (``fourier.interpolate.patch_order``).
        """
        field = self.transform.field(points_inv_A, matrices, order=order)
        xp = array_namespace(field)
        if self.n_models == 1:
            return xp.ascontiguousarray(field.real)
        return xp.stack([field.real, field.imag])


def _choose_kernel(error: float, width: int | None) -> InterpolationKernel:
    """The kernel with the smallest product of grid and taps."""
    if width is not None and width not in WIDTHS:
        raise OrienteerError(f"the width is {width} taps; it must be one of {', '.join(map(str, WIDTHS))}.")
    kernels = [kernel_for_error(w, error) for w in (WIDTHS if width is None else [width])]
    fitting = [kernel for kernel in kernels if kernel is not None]
    if not fitting:
        raise OrienteerError(
            f"no interpolation kernel of width {width} has an error of {error:.2g}.", "Give a larger width."
        )
    return min(fitting, key=lambda kernel: (kernel.oversampling * kernel.width) ** 3)


def _fine_grid(
    models: Array, voxel_A: float, kernel: InterpolationKernel, q_max_inv_A: float
) -> tuple[Array, float, int]:
    """The corrected grid (m, m, m) complex64, its spacing in 1/A and the index of q = 0.

    Transforms are made in float64: rounding errors of float32 are relative to the intensity at q = 0, and
    would be visible far out.
    """
    from scipy.fft import next_fast_len

    xp = array_namespace(models)
    n = models.shape[-1]
    n_fine = int(next_fast_len(ceil(kernel.oversampling * n)))
    spacing = 1 / (n_fine * voxel_A)
    centre = ceil(q_max_inv_A / spacing + kernel.width / 2) + 1
    voxel = np.arange(n) - n // 2
    correction = xp.asarray(1 / kernel.transform(voxel / n_fine))
    places = xp.asarray(voxel % n_fine)
    kept = xp.asarray(np.arange(-centre, centre + 1) % n_fine)
    parts = []
    for model in models:
        values = model.astype(xp.float64)
        values = values * correction[:, None, None] * correction[:, None] * correction
        extended = xp.zeros((n_fine,) * 3, dtype=xp.float64)
        extended[places[:, None, None], places[:, None], places] = values
        # The real part belongs to the even part of the autocorrelation, the only one that matters here.
        parts.append(_transform(extended).real[kept[:, None, None], kept[:, None], kept])
    grid = parts[0] + 1j * (parts[1] if len(parts) == 2 else 0.0)
    return xp.ascontiguousarray(grid.astype(xp.complex64)), spacing, centre


def _transform(values: Array) -> Array:
    if is_on_gpu(values):
        return array_namespace(values).fft.fftn(values)
    from scipy.fft import fftn

    return fftn(values, workers=usable_cores())


def _check_cube(array: Array, voxel_A: float, *, several: bool) -> None:
    shape: tuple[Any, ...] = tuple(array.shape)
    is_pair = several and len(shape) == 4 and shape[0] in (1, 2)
    if len(shape[-3:]) != 3 or len(set(shape[-3:])) != 1 or shape[-1] < 1 or not (len(shape) == 3 or is_pair):
        raise OrienteerError(
            f"the autocorrelation has shape {shape}; expected a cube (n, n, n){' or two' * several}."
        )
    if array.dtype.kind != "f":
        raise OrienteerError(f"the autocorrelation is {array.dtype}; it must be real.")
    if not bool(array_namespace(array).isfinite(array).all()):
        raise OrienteerError("the autocorrelation contains values that are not finite numbers.")
    if not 0 < voxel_A < np.inf:
        raise OrienteerError(f"the voxel is {voxel_A:g} A; it must be positive and finite.")
