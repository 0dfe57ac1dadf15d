"""Normal equations of the particle's autocorrelation, from frames of known orientation, as sums.

The intensity is the transform of the autocorrelation x, which is real, even and sampled on a cube of voxels:

    (A x)_k = sum_v  x_v  exp(2 pi i q_k . r_v)        r_v = voxel_A (index - n // 2), q = 1/d

Frames show b_k = fluence * (A x)_k with noise.  Minimising  sum_k w_k |fluence (A x)_k - b_k|^2  requires
only two sums over all pixels of all frames:

    kernel_d     = sum_k  w_k fluence^2    cos(2 pi q_k . r_d)      d: differences of two voxels, (2n - 1)^3
    right_side_v = sum_k  w_k fluence b_k  cos(2 pi q_k . r_v)      n^3

The normal matrix is (A* W A)_vv' = kernel_(v - v'), so it is never stored (see ``toeplitz``).  Kernel and
right side are plain sums without any other factor, so those of batches, half sets and ranks can be added.

Both cosine sums come from one complex transform.  The strengths c = w fluence^2 + i w fluence b have the
transform X_d = Q_d + i R_d.  Q and R, transforms of real strengths, are conjugated at -d; so the mean of X_d
and X_-d is Re Q_d + i Re R_d.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from orienteer.compute.arrays import Array, DeviceName, array_namespace, is_on_gpu, namespace_of_device
from orienteer.compute.ranks.comm import Comm
from orienteer.errors import OrienteerError
from orienteer.fourier.nonuniform import NonuniformTransform, Precision, least_tolerance

# Points that are transformed together; each needs some hundred bytes.
_POINTS_AT_ONCE = {"cpu": 2**23, "cuda": 2**26}


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """Sums over the pixels of frames; immutable.  ``+`` adds those of two sets of frames.

    kernel : (2n - 1, 2n - 1, 2n - 1) float64, even, difference 0 at index n - 1.
    right_side : (n, n, n) float64, centre at n // 2.
    voxel_A : edge of a voxel.
    data_square : sum of w b^2.
    n_values : pixels of frames with a weight above 0.
    q_max_inv_A : largest \\|q\\| of these.
    """

    kernel: Array
    right_side: Array
    voxel_A: float
    data_square: float = 0.0
    n_values: int = 0
    q_max_inv_A: float = 0.0

    @classmethod
    def empty(cls, n: int, voxel_A: float, device: DeviceName = "cpu") -> Self:
        """The sums of no frames, for a cube of n^3 voxels."""
        if n < 2:
            raise OrienteerError(f"an autocorrelation of {n} voxels along an edge is too small.")
        if not 0 < voxel_A < np.inf:
            raise OrienteerError(f"the voxel is {voxel_A:g} A; it must be positive and finite.")
        xp = namespace_of_device(device)
        return cls(xp.zeros((2 * n - 1,) * 3), xp.zeros((n,) * 3), float(voxel_A))

    @property
    def n(self) -> int:
        """Voxels along an edge of the autocorrelation."""
        return int(self.right_side.shape[0])

    @property
    def total_weight(self) -> float:
        """Sum of w fluence^2, the unit of every regularisation.

        It is the eigenvalue of the normal matrix if the points are spread evenly over all frequencies.
        """
        return float(self.kernel[(self.n - 1,) * 3])

    def __add__(self, other: "NormalEquations") -> "NormalEquations":
        if self.n != other.n or not np.isclose(self.voxel_A, other.voxel_A, rtol=1e-9):
            raise OrienteerError(
                f"sums for {self.n}^3 voxels of {self.voxel_A:g} A and for {other.n}^3 voxels of "
                f"{other.voxel_A:g} A cannot be added."
            )
        if is_on_gpu(self.kernel) != is_on_gpu(other.kernel):
            raise OrienteerError("sums on different devices cannot be added.")
        return NormalEquations(
            self.kernel + other.kernel, self.right_side + other.right_side, self.voxel_A,
            self.data_square + other.data_square, self.n_values + other.n_values,
            max(self.q_max_inv_A, other.q_max_inv_A),
        )  # fmt: skip

    def summed(self, comm: Comm) -> "NormalEquations":
        """The sums of the frames of all ranks."""
        if comm.size == 1:
            return self
        return NormalEquations(
            comm.sum(self.kernel), comm.sum(self.right_side), self.voxel_A, comm.sum(self.data_square),
            comm.sum(self.n_values), comm.max(self.q_max_inv_A),
        )  # fmt: skip

    def with_frames(
        self, frames: Array, points_inv_A: Array, matrices: Array, *, weights: Array | None = None,
        fluence: Array | None = None, tolerance: float = 1e-6, precision: Precision = "double",
        points_at_once: int = 0,
    ) -> "NormalEquations":  # fmt: skip
        """The sums with K more frames of P pixels.

        frames : (K, P), measured values in any unit; NumPy or CuPy, as the sums are.
        points_inv_A : (P, 3) scattering vectors of the pixels, for a particle that is not turned.
        matrices : (K, 3, 3), the transposes of the rotations of the particle.
        weights : (K, P), (K, 1) or (P,), 1 by default: one over the variance, times the probability of the
            orientation.  A pixel of weight 0 is left out, whatever it holds.
        fluence : (K,), 1 by default.
        tolerance : error of the sums, relative to the strongest pixels.  Weights of one over the variance
            keep weak pixels above it.
        points_at_once : pixels that are transformed together; 0: as many as suit the device.
        """
        xp = array_namespace(frames)
        frames, points, matrices = _checked(self, frames, points_inv_A, matrices)
        least = 2 * least_tolerance(2 * self.n - 1, precision)
        if not least <= tolerance <= 0.1:
            raise OrienteerError(
                f"sums for {self.n}^3 voxels cannot keep a tolerance of {tolerance:g} in {precision} "
                f"precision; it must lie between {least:.2g} and 0.1.",
                "Use double precision for smaller errors." if precision == "single" else "",
            )
        K, P = frames.shape
        weights = _checked_weights(xp, weights, (K, P))
        fluence = _checked_fluence(xp, fluence, K)
        size = points_at_once or _POINTS_AT_ONCE["cuda" if is_on_gpu(frames) else "cpu"]
        rows = max(1, size // max(P, 1))
        result = self
        for first in range(0, K, rows):
            part = slice(first, first + rows)
            some = weights[part] if len(weights) == K else weights
            result = result + self._of_frames(
                xp, frames[part], points, matrices[part], some, fluence[part], tolerance, precision
            )
        return result

    def _of_frames(
        self, xp: Any, frames: Array, points: Array, matrices: Array, weights: Array, fluence: Array,
        tolerance: float, precision: Precision,
    ) -> "NormalEquations":  # fmt: skip
        q = (points[None] @ xp.swapaxes(matrices, 1, 2)).reshape(-1, 3)  # rows are matrices[k] @ points[p]
        weights = xp.broadcast_to(weights, frames.shape)
        used = weights > 0
        # A pixel without weight may hold anything, such as NaN.
        values = xp.where(used, frames, 0.0).astype(xp.float64)
        if not bool(xp.isfinite(values).all()):
            raise OrienteerError(
                "frames contain values that are not finite in pixels whose weight is not 0.",
                "Give such pixels the weight 0, or mask them.",
            )
        of_kernel = (weights * fluence[:, None] ** 2).ravel()
        of_data = (weights * fluence[:, None] * values).ravel()
        # Scale both parts of the strengths to one size: the smaller would drown in the error of the larger.
        sizes = float(xp.linalg.vector_norm(of_kernel)), float(xp.linalg.vector_norm(of_data))
        scale = sizes[1] / sizes[0] if min(sizes) > 0 else 1.0

        q_max = float((xp.linalg.vector_norm(q, axis=1) * used.ravel()).max()) if q.size else 0.0
        if q_max * self.voxel_A > 0.5 * (1 + 1e-6):
            # Beyond this, a wave has the same values on the voxels as one of lower frequency.
            raise OrienteerError(
                f"pixels reach {q_max:.4g} 1/A, but voxels of {self.voxel_A:.4g} A hold only up to "
                f"{0.5 / self.voxel_A:.4g} 1/A.",
                f"Use voxels of {0.5 / q_max:.4g} A or less, or give the pixels beyond that the weight 0.",
            )
        n = self.n
        # Kernel and right side come from one transform: each gets half of the error.
        transform = NonuniformTransform(
            2 * n - 1, q * self.voxel_A, tolerance=tolerance / 2, precision=precision
        )
        both = transform.to_grid(of_kernel + 1j * (of_data / scale))
        both = (both + both[::-1, ::-1, ::-1]) / 2
        first = n - 1 - n // 2
        middle = (slice(first, first + n),) * 3
        return NormalEquations(
            both.real.astype(xp.float64),
            both.imag[middle].astype(xp.float64) * scale,
            self.voxel_A,
            float((weights * values**2).sum()),
            int(used.sum()),
            q_max,
        )


def _checked(
    equations: NormalEquations, frames: Array, points: Array, matrices: Array
) -> tuple[Array, Array, Array]:
    """Frames as they are, points and matrices in float64 on their device."""
    xp = array_namespace(frames)
    if is_on_gpu(frames) != is_on_gpu(equations.kernel):
        raise OrienteerError("frames and sums must lie on the same device.")
    points, matrices = xp.asarray(points, dtype=xp.float64), xp.asarray(matrices, dtype=xp.float64)
    if frames.ndim != 2 or points.shape != (frames.shape[1], 3) or matrices.shape != (len(frames), 3, 3):
        raise OrienteerError(
            f"frames {tuple(frames.shape)}, points {tuple(points.shape)} and matrices "
            f"{tuple(matrices.shape)} are not (K, P), (P, 3) and (K, 3, 3)."
        )
    return frames, points, matrices


def _checked_weights(xp: Any, weights: Array | None, shape: tuple[int, int]) -> Array:
    weights = xp.ones((1, 1)) if weights is None else xp.asarray(weights, dtype=xp.float64)
    weights = weights[None] if weights.ndim == 1 else weights
    if weights.ndim != 2 or any(w not in (1, s) for w, s in zip(weights.shape, shape, strict=True)):
        raise OrienteerError(f"weights {tuple(weights.shape)} do not fit frames {shape}.")
    if not bool((xp.isfinite(weights) & (weights >= 0)).all()):
        raise OrienteerError("weights must be finite and not negative.")
    return weights


def _checked_fluence(xp: Any, fluence: Array | None, K: int) -> Array:
    fluence = xp.ones(K) if fluence is None else xp.asarray(fluence, dtype=xp.float64)
    if fluence.shape != (K,) or not bool((xp.isfinite(fluence) & (fluence >= 0)).all()):
        raise OrienteerError(f"fluence must be {K} finite numbers, none of them negative.")
    return fluence
