"""CPU twin of ``projection.cu``: the elementwise halves of an iteration, each in one pass over memory."""

import numpy as np
from numba import njit, prange


@njit(nogil=True, parallel=True, cache=True)
def project_modulus(transform, target, background, scale):  # type: ignore[no-untyped-def]
    """F[b, m] becomes scale * F with the modulus of the target, or one not above its bound.

    transform (B, M) complex64; target (M,) float32, minus the bound where there is no amplitude;
    background (B,) float32, taken off the intensity.
    """
    B, M = transform.shape
    rows = 4096
    tasks = (M + rows - 1) // rows
    for job in prange(B * tasks):
        b, task = job // tasks, job % tasks
        below = background[b]
        for m in range(task * rows, min(M, (task + 1) * rows)):
            value = transform[b, m]
            square = value.real * value.real + value.imag * value.imag
            wanted = target[m]
            factor = scale
            if wanted >= 0:
                wanted2 = max(wanted * wanted - below, np.float32(0))
                # A voxel without phase takes a real one.
                if square > 0:
                    factor = scale * np.sqrt(wanted2 / square)
                else:
                    value, factor = np.complex64(np.sqrt(wanted2)), scale
            elif square > wanted * wanted:
                factor = scale * (-wanted / np.sqrt(square))
            transform[b, m] = np.complex64(complex(value.real * factor, value.imag * factor))


@njit(nogil=True, parallel=True, cache=True)
def relax(density, projected, support, keep, add, reflect, positive):  # type: ignore[no-untyped-def]
    """x[b, v] = p where t = p + reflect (p - x) obeys support and sign, else keep x + add p.  All (B, V)."""
    B, V = density.shape
    rows = 4096
    tasks = (V + rows - 1) // rows
    for job in prange(B * tasks):
        b, task = job // tasks, job % tasks
        for v in range(task * rows, min(V, (task + 1) * rows)):
            x, p = density[b, v], projected[b, v]
            allowed = support[b, v] and (not positive or p + reflect * (p - x) >= 0)
            density[b, v] = p if allowed else keep * x + add * p
