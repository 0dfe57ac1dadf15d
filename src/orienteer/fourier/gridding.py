"""The corrected grid from which a transform is interpolated: from a particle, or from a density on voxels.

What is known of a particle is its exact transform F.  For a density, F has to be cut off somewhere, and a
sharp cut would make the density ring far beyond the particle.  Therefore:

1. F is computed on a coarse grid of spacing 1/L, to Q = q_max + margin, and multiplied along each axis by a
   taper that is 1 to q_max and falls smoothly to 0 at Q.  Below q_max nothing changes.
2. An FFT gives the density in a box of side L = 2 R + 2 padding.  Outside the particle it is the response to
   what the taper removed, so it holds frequencies above q_max only, and it falls like
   exp(-pi margin padding).  What is left of it at the edge of the box folds back: the product of margin and
   padding follows from the requested error, and its factors are chosen such that the coarse grid is smallest.
3. The density is divided by the kernel's transform, extended with zeros to the oversampled box, and
   transformed back: axis by axis, keeping after each only the frequencies that will be read, so that the
   whole oversampled cube never exists.
"""

from dataclasses import dataclass
from math import ceil, log, pi, sqrt
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.machine import memory_GiB, usable_cores
from orienteer.compute.progress import steps
from orienteer.errors import OrienteerError
from orienteer.fourier.interpolation_kernel import InterpolationKernel

_SLAB_BYTES = 64 * 2**20


class CompactObject(Protocol):
    """An object near the origin whose transform can be computed on grids, such as every particle."""

    @property
    def radius_A(self) -> float:
        """Everything lies within this distance of the origin."""
        ...

    def amplitude_on_grid(
        self, axis_inv_A: NDArray[np.float64], photon_energy_eV: float | None = None
    ) -> NDArray[np.complex128]:
        """The transform on the cubic grid axis x axis x axis, (n, n, n) electrons."""
        ...


@dataclass(frozen=True)
class FineGrid:
    """Values G on a cubic grid, for interpolation anywhere within ``q_max``.

    values : (m, m, m) complex64.
    spacing_inv_A : distance between grid points.
    centre : index of q = 0 along every axis.
    """

    values: NDArray[np.complex64]
    spacing_inv_A: float
    centre: int


@dataclass(frozen=True)
class CoarseGrid:
    """The grid on which the transform of an object of a given radius is computed, chosen for an error.

    box_A : L, the box of the density.
    q_cut_inv_A : Q, where the taper has fallen to 0.
    beta : shape of the taper.
    """

    box_A: float
    q_cut_inv_A: float
    beta: float

    @classmethod
    def chosen(cls, radius_A: float, q_max_inv_A: float, error: float) -> "CoarseGrid":
        """The smallest grid with this error."""
        decay = (log(1 / error) + 3) / pi
        padding = sqrt(decay * radius_A / q_max_inv_A)
        return cls(2 * (radius_A + padding), q_max_inv_A + decay / padding, decay * pi)

    @property
    def n_least(self) -> int:
        """Points along an axis, before they are rounded up to a length that is quick to transform."""
        return 2 * ceil(self.q_cut_inv_A * self.box_A)


def check_memory(
    n: int, m: float, itemsize: int, radius_A: float, q_max_inv_A: float, *, from_object: bool
) -> None:
    """Refuse a transform whose grids would not fit in memory, before anything is allocated.

    n, m : points along an axis of the coarse and of the fine grid.
    itemsize : bytes of a value while it is transformed.
    from_object : whether the coarse grid has to be computed first, which takes the most memory.
    """
    # The object's own non-uniform FFT works on a grid twice as large as its result, and in batches of 1 GiB.
    of_coarse = 16.0 * n**3
    coarse = 5 * of_coarse + min(8 * of_coarse, 2.0**30) if from_object else 0.0
    fine = of_coarse + 2.0 * itemsize * max(n, m) ** 3 + 8.0 * m**3
    needed, free = max(coarse, fine) / 2**30, memory_GiB()[1]
    if needed > free:
        raise OrienteerError(
            f"the transform of an object of radius {radius_A:,.0f} A up to {q_max_inv_A:.4g} 1/A needs about "
            f"{needed:,.2f} GiB of memory, and {free:.3g} GiB are free.",
            "The radius counts from the origin: centre the particle there if it is not.  Otherwise ask for "
            "less: a coarser resolution at the edge, or a smaller particle.",
        )


def fine_size(box_A: float, diameter_A: float, kernel: InterpolationKernel, q_max_inv_A: float) -> float:
    """Approximate number of points of the fine grid along an axis."""
    return 2 * q_max_inv_A * max(box_A, kernel.oversampling * diameter_A) + kernel.width + 4


def coarse_density(
    particle: CompactObject, photon_energy_eV: float | None, q_max_inv_A: float, grid: CoarseGrid
) -> tuple[NDArray[np.complex128], float]:
    """The particle's tapered density in electrons per voxel, centre at n // 2, and the voxel in A."""
    from scipy.fft import fftn, fftshift, ifftshift, next_fast_len

    n = 2 * next_fast_len(grid.n_least // 2)
    axis = (np.arange(n) - n // 2) / grid.box_A
    taper = _taper(np.abs(axis), q_max_inv_A, grid.q_cut_inv_A, grid.beta)
    values = particle.amplitude_on_grid(axis, photon_energy_eV) * taper[:, None, None]
    values *= taper[:, None]
    values *= taper
    density = fftn(ifftshift(values), norm="forward", workers=usable_cores(), overwrite_x=True)
    return fftshift(density), grid.box_A / n


def fine_grid(
    density: NDArray[Any], voxel_A: float, diameter_A: float, kernel: InterpolationKernel, q_max_inv_A: float,
    dtype: Any = np.complex64,
) -> FineGrid:  # fmt: skip
    """The corrected, oversampled transform of a density (n, n, n) in electrons per voxel, centre at n // 2.

    ``dtype`` is the precision of the transforms; the result is complex64.
    """
    from scipy.fft import next_fast_len

    n = len(density)
    # Never smaller than the density's own box, whose rim may hold the taper's tail.
    n_fine = next_fast_len(max(n, ceil(kernel.oversampling * diameter_A / voxel_A)))
    spacing = 1 / (n_fine * voxel_A)
    centre = ceil(q_max_inv_A / spacing + kernel.width / 2) + 1

    voxel = np.arange(n) - n // 2
    correction = 1 / kernel.transform(voxel / n_fine)
    values = np.array(density, dtype=dtype)
    kept = np.arange(-centre, centre + 1) % n_fine
    for axis in (2, 1, 0):
        values = _transform_axis(values, axis, correction, voxel % n_fine, n_fine, kept)
    return FineGrid(np.ascontiguousarray(values, np.complex64), spacing, centre)


def _transform_axis(
    values: NDArray[Any], axis: int, correction: NDArray[np.float64], voxel: NDArray[np.int64], n_fine: int,
    kept: NDArray[np.int64],
) -> NDArray[Any]:  # fmt: skip
    """sum_v values_v correction_v exp(+2 pi i l v / n_fine) along one axis, for l in ``kept``."""
    from scipy.fft import ifft

    lines = np.moveaxis(values, axis, -1)
    result = np.empty((*lines.shape[:-1], len(kept)), values.dtype)
    slab = max(1, _SLAB_BYTES // (lines.shape[1] * n_fine * values.itemsize))
    for first in steps(range(0, len(lines), slab), "Finer grid"):
        some = lines[first : first + slab]
        extended = np.zeros((*some.shape[:-1], n_fine), values.dtype)
        extended[..., voxel] = some * correction.astype(values.real.dtype)
        # norm="forward" leaves the sign +2 pi i transform unscaled, as in the conventions.
        result[first : first + slab] = ifft(
            extended, norm="forward", workers=usable_cores(), overwrite_x=True
        )[..., kept]
    return np.moveaxis(result, -1, axis)


def _taper(q: NDArray[np.float64], q_max: float, q_cut: float, beta: float) -> NDArray[np.float64]:
    """1 up to q_max, 0 from q_cut on; between them the integral of a Kaiser-Bessel window."""
    u = np.linspace(-1, 1, 2**15 + 1)
    window = np.i0(beta * np.sqrt(1 - u * u))
    rising = np.concatenate([[0.0], np.cumsum((window[1:] + window[:-1]) / 2)])
    where = (q - (q_max + q_cut) / 2) / ((q_cut - q_max) / 2)
    return np.asarray(1 - np.interp(where, u, rising / rising[-1]))
