"""Operands straight from a volume on the CPU: sliced, expanded and packed into panels in one go.

For weak frames, slices are needed only to make operands, which photon lists read by pixel, panel by panel
(``_product_numba.py``).  Both are made block by block in the first-level cache, so that slices never go
through main memory.  One thread computes a row, pixel after pixel, so the number of threads changes no bit.
"""

from functools import cache
from typing import Any

import numpy as np
from numba import njit, prange

from orienteer.likelihood._expected_numba import terms
from orienteer.slicing._trilinear_numba import FAST, matrix_of, sample_block

ROWS = 16  # of a block: a cache line of a panel
PIXELS = 256  # of a block; their offsets are added in float32, then go to float64


@cache
def compiled_kernel(kind: int) -> Any:
    """The kernel for a kind of likelihood."""
    KIND = kind

    @njit(nogil=True, parallel=True, cache=True, fastmath=FAST)
    def slice_operand(  # type: ignore[no-untyped-def]
        flat, n, points, matrices, correction, floor, background, centre, dispersion, fluence,
        corner, places, block, panels, offsets, signal,
    ):  # fmt: skip
        """panels[b, p, t] = operand of row b * width + t; offsets and signal (T,): sums over the pixels.

        corner, places : scratch memory for PIXELS points; block : (workers, ROWS, PIXELS) more of it.
        """
        T, (_, S, width) = len(matrices), panels.shape
        workers = len(block)
        for worker in prange(workers):
            for first in range(worker * ROWS, T, workers * ROWS):
                panel, column = first // width, first % width
                count = min(ROWS, T - first)
                for r in range(count):
                    offsets[first + r] = signal[first + r] = 0.0
                for p0 in range(0, S, PIXELS):
                    m = min(PIXELS, S - p0)
                    for r in range(count):
                        k = first + r
                        matrix = matrix_of(matrices, k)
                        sample_block(flat, n, matrix, points, p0, m, worker, corner, places)
                        total, total_signal = np.float32(0), np.float32(0)
                        for i in range(m):
                            p = np.uint64(p0 + i)
                            sample = places[worker, 3, i]
                            value, offset = terms(
                                KIND, sample, correction[p], floor[p], background[p], centre[p],
                                dispersion[p], fluence,
                            )  # fmt: skip
                            block[worker, r, i] = value
                            total += offset
                            total_signal += sample * correction[p]
                        offsets[k] += np.float64(total)
                        signal[k] += np.float64(total_signal)
                    if count == ROWS:  # a loop of known length
                        for i in range(m):
                            for r in range(ROWS):
                                panels[panel, np.uint64(p0 + i), np.uint64(column + r)] = block[worker, r, i]
                    else:
                        for i in range(m):
                            for r in range(count):
                                panels[panel, p0 + i, column + r] = block[worker, r, i]

    return slice_operand
