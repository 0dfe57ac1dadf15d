"""Sums over the shells of two half transforms on the CPU; the twin of ``fsc.cu``."""

import numpy as np
from numba import njit, prange


@njit(nogil=True, parallel=True, cache=True)
def shell_products(a, b, n, S, sums):  # type: ignore[no-untyped-def]
    """sums[x, :, s] = Σ Re A B*, Σ |A|², Σ |B|² over shell s of plane x; (n, 3, S) zeros when called.

    a, b : (n, n, n // 2 + 1) complex128 in the order of the FFT; what lies beyond shell S - 1 is left out.
    """
    for x in prange(n):
        u = x if x <= n // 2 else x - n
        for y in range(n):
            v = y if y <= n // 2 else y - n
            for w in range(n // 2 + 1):
                s = int(np.sqrt(float(u * u + v * v + w * w)) + 0.5)
                if s >= S:
                    break
                # Voxels with q_z > 0 stand for their mates, too, which are not stored.
                weight = 1.0 if w == 0 else 2.0
                p, q = a[x, y, w], b[x, y, w]
                sums[x, 0, s] += weight * (p.real * q.real + p.imag * q.imag)
                sums[x, 1, s] += weight * (p.real * p.real + p.imag * p.imag)
                sums[x, 2, s] += weight * (q.real * q.real + q.imag * q.imag)
