"""Copy half cubes into and out of the boxes of their transforms, in one pass each.

A half cube (n // 2 + 1, n, n) has the planes x >= 0 of a cube that is its own mirror image.  In a box
(m // 2 + 1, m, m) its centre is the first number; negative y and z wrap around to the end.
"""

import numpy as np
from numba import njit, prange


@njit(nogil=True, parallel=True, cache=True)
def into_box(cube, curve, shell, box):  # type: ignore[no-untyped-def]
    """box = cube * curve[shell], and 0 around it."""
    h, n, _ = cube.shape
    m, c = box.shape[1], n // 2
    for x in prange(len(box)):
        for y in range(m):
            source = y + c if y + c < n else y + c - m
            if x >= h or source < 0:
                box[x, y] = 0
                continue
            for z in range(n - c):
                box[x, y, z] = cube[x, source, z + c] * curve[shell[x, source, z + c]]
            box[x, y, n - c : m - c] = 0
            for z in range(c):
                box[x, y, z + m - c] = cube[x, source, z] * curve[shell[x, source, z]]


@njit(nogil=True, parallel=True, cache=True)
def add_from_box(box, curve, shell, cube):  # type: ignore[no-untyped-def]
    """cube += box * curve[shell]."""
    h, n, _ = cube.shape
    m, c = box.shape[1], n // 2
    for x in prange(h):
        for y in range(n):
            source = y - c if y >= c else y - c + m
            for z in range(c):
                cube[x, y, z] += box[x, source, z + m - c] * curve[shell[x, y, z]]
            for z in range(n - c):
                cube[x, y, z + c] += box[x, source, z] * curve[shell[x, y, z + c]]


@njit(nogil=True, parallel=True, cache=True)
def multiply(values, curve, index, out):  # type: ignore[no-untyped-def]
    """out = values * curve[index]; all (planes, numbers) but the curve."""
    for x in prange(len(values)):
        for v in range(values.shape[1]):
            out[x, v] = values[x, v] * curve[index[x, v]]


@njit(nogil=True, parallel=True, cache=True)
def is_mirrored(cube, tolerance):  # type: ignore[no-untyped-def]
    """Whether a cube (n, n, n) is the same at -q as at q, within a share of the larger of both values."""
    n = len(cube)
    flat = cube.reshape(n, n * n)
    differs = np.zeros(n // 2 + 1, np.bool_)
    for x in prange(n // 2 + 1):
        for v in range(n * n):
            a, b = flat[x, v], flat[n - 1 - x, n * n - 1 - v]
            if not abs(a - b) <= tolerance * max(abs(a), abs(b)):
                differs[x] = True
                break
    return not differs.any()
