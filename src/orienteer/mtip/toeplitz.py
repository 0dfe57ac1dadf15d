"""Product with the normal matrix of a merge: a convolution with the kernel, by zero-padded transforms.

    (T x)_v = s_v sum_v' (kernel_(v - v') + outside * h_(v - v')) s_v' x_v'

s is the support, 1 where x may differ from 0, and 0 elsewhere.  h penalises the power of x at frequencies
that no pixel has measured: x* h x is the part of |x|^2 beyond a radius in the cube of frequencies, so
``outside`` has the unit of a Tikhonov weight.  The penalty is a factor within the same transforms and costs
nothing.
"""

from typing import Any

import numpy as np

from orienteer.compare.distances import squared_distances
from orienteer.compute.arrays import Array, array_namespace, is_on_gpu, to_device
from orienteer.compute.fast_length import fast_length
from orienteer.compute.machine import usable_cores
from orienteer.errors import OrienteerError
from orienteer.fourier.nonuniform import Precision

# Memory for transforms that are made together; at least one is made.
_BATCH_BYTES = {"cpu": 2**26, "cuda": 2**32}


class ToeplitzProduct:
    """x -> T x for cubes (n, n, n) or (B, n, n, n), on the device of the kernel.

    kernel : (2n - 1,)^3 real, even, difference 0 at index n - 1.
    support : (n, n, n), where x may differ from 0; everywhere by default.
    outside, radius : weight of the penalty, and the radius in periods per voxel beyond which it applies.
    precision : of the transforms and of the result.
    """

    def __init__(
        self, kernel: Array, *, support: Array | None = None, outside: float = 0.0, radius: float = 0.5,
        precision: Precision = "double",
    ) -> None:  # fmt: skip
        size = kernel.shape[0]
        if kernel.ndim != 3 or len(set(kernel.shape)) != 1 or size % 2 == 0:
            raise OrienteerError(f"the kernel has shape {tuple(kernel.shape)}; expected (2n - 1,)^3.")
        if not 0 <= outside < np.inf:
            raise OrienteerError(f"the penalty outside is {outside:g}; it must be 0 or positive.")
        self.n = (size + 1) // 2
        self.dtype: Any = np.float32 if precision == "single" else np.float64
        self._on_gpu = is_on_gpu(kernel)
        xp = array_namespace(kernel)
        if support is not None and tuple(support.shape) != (self.n,) * 3:
            raise OrienteerError(f"the support has shape {tuple(support.shape)}; expected {self.n}^3.")
        self.support: Array | None = None if support is None else xp.asarray(support).astype(self.dtype)
        self.box = fast_length(size)
        spectrum = self._transform(_wrapped(kernel, self.box)).real  # an even kernel has a real transform
        if outside:
            unmeasured = to_device(beyond(self.box, radius), "cuda" if self._on_gpu else "cpu")
            spectrum = spectrum + outside * unmeasured
        self._spectrum = xp.ascontiguousarray(spectrum.astype(self.dtype))

    def __call__(self, volumes: Array) -> Array:
        """T x, in the shape of x and in the precision of the product."""
        xp = array_namespace(volumes)
        if tuple(volumes.shape[-3:]) != (self.n,) * 3 or volumes.ndim > 4:
            raise OrienteerError(
                f"volumes have shape {tuple(volumes.shape)}; expected {(self.n,) * 3}, or several of them."
            )
        x = volumes.astype(self.dtype).reshape(-1, *(self.n,) * 3)
        if self.support is not None:
            x = x * self.support
        out = xp.empty_like(x)
        room = _BATCH_BYTES["cuda" if self._on_gpu else "cpu"]
        step = max(1, room // (self._spectrum.size * 2 * self._spectrum.itemsize))
        for first in range(0, len(x), step):
            part = slice(first, first + step)
            transform = self._transform(x[part])
            transform *= self._spectrum
            out[part] = self._back(transform)
        if self.support is not None:
            out *= self.support
        return out.reshape(volumes.shape)

    def _transform(self, x: Array) -> Array:
        """Transforms (..., m, m, m // 2 + 1) of zero-padded cubes."""
        m = self.box
        if self._on_gpu:
            return array_namespace(x).fft.rfftn(x, s=(m, m, m), axes=(-3, -2, -1))
        from scipy.fft import fft, rfft

        # Axis by axis, so that lines of zeros are not transformed.
        options: dict[str, Any] = {"n": m, "workers": usable_cores()}
        return fft(fft(rfft(x, axis=-1, **options), axis=-2, **options), axis=-3, **options)

    def _back(self, transform: Array) -> Array:
        """The cubes (..., n, n, n) of their transforms."""
        m, n = self.box, self.n
        if self._on_gpu:
            cubes = array_namespace(transform).fft.irfftn(transform, s=(m, m, m), axes=(-3, -2, -1))
            return cubes[..., :n, :n, :n]
        from scipy.fft import ifft, irfft

        # After each axis keep only the n voxels that are needed.
        options: dict[str, Any] = {"workers": usable_cores(), "overwrite_x": True}
        lines = ifft(transform, axis=-3, **options)[..., :n, :, :]
        lines = ifft(lines, axis=-2, **options)[..., :n, :]
        return irfft(lines, n=m, axis=-1, **options)[..., :n]


def beyond(m: int, radius: float) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Frequencies of a box with m voxels beyond a radius in periods per voxel, (m, m, m // 2 + 1) bool."""
    whole, half = np.fft.fftfreq(m), np.fft.rfftfreq(m)
    return np.asarray(squared_distances(whole, half) > radius**2 * (1 + 1e-9))


def _wrapped(kernel: Array, m: int) -> Array:
    """The kernel in a box of m voxels, with difference 0 at index 0 and negative ones at the end."""
    xp = array_namespace(kernel)
    n = (kernel.shape[0] + 1) // 2
    wrapped = xp.zeros((m, m, m), dtype=xp.float64)
    wrapped[: 2 * n - 1, : 2 * n - 1, : 2 * n - 1] = kernel
    return xp.roll(wrapped, (1 - n,) * 3, axis=(0, 1, 2))
