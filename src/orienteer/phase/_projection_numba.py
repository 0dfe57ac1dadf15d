"""CPU twin of ``projection.cu``: the elementwise halves of an iteration, each in one pass over memory.

The compiler vectorises the loops because they have no branches, and because divisions follow NumPy, which
does not raise an error for zeros.
"""

import numpy as np
from numba import njit, prange

_VOXELS_PER_TASK = 4096
_ZERO, _ONE = np.float32(0), np.float32(1)


@njit(nogil=True, parallel=True, cache=True, error_model="numpy")
def project_modulus(parts, target, background, scale):  # type: ignore[no-untyped-def]
    """F[b, m] becomes scale * F with the modulus of the target, or with a modulus not above its bound.

    parts (B, M, 2) float32, real and imaginary part of F; target (M,) float32, minus the bound where there is
    no amplitude; background (B,) float32, subtracted from the intensity.
    """
    B, M, _ = parts.shape
    tasks = (M + _VOXELS_PER_TASK - 1) // _VOXELS_PER_TASK
    for job in prange(B * tasks):
        b, task = job // tasks, job % tasks
        below = background[b]
        first, last = task * _VOXELS_PER_TASK, min(M, (task + 1) * _VOXELS_PER_TASK)
        row, wanted_there = parts[b, first:last], target[first:last]
        for m in range(last - first):
            real, imaginary, wanted = row[m, 0], row[m, 1], wanted_there[m]
            square = real * real + imaginary * imaginary
            exact = wanted >= _ZERO
            wanted2 = wanted * wanted - (below if exact else _ZERO)
            wanted2 = wanted2 if wanted2 > _ZERO else _ZERO
            # A voxel that is 0 has no phase; it becomes real and positive.
            is_empty = square == _ZERO
            real = _ONE if is_empty & exact else real
            ratio = wanted2 / (_ONE if is_empty else square)
            ratio = _ONE if (ratio > _ONE) & (not exact) else ratio
            factor = scale * np.sqrt(ratio)
            row[m, 0] = real * factor
            row[m, 1] = imaginary * factor


@njit(nogil=True, parallel=True, cache=True, error_model="numpy")
def relax(density, projected, support, keep, add, reflect, positive):  # type: ignore[no-untyped-def]
    """x[b, v] = p where t = p + reflect (p - x) obeys support and sign, else keep x + add p.  All (B, V)."""
    B, V = density.shape
    tasks = (V + _VOXELS_PER_TASK - 1) // _VOXELS_PER_TASK
    # A bound of minus infinity allows any sign.
    least = _ZERO if positive else np.float32(-np.inf)
    for job in prange(B * tasks):
        b, task = job // tasks, job % tasks
        first, last = task * _VOXELS_PER_TASK, min(V, (task + 1) * _VOXELS_PER_TASK)
        xs, ps, inside = density[b, first:last], projected[b, first:last], support[b, first:last]
        for v in range(last - first):
            x, p = xs[v], ps[v]
            allowed = inside[v] & (p + reflect * (p - x) >= least)
            xs[v] = p if allowed else keep * x + add * p
