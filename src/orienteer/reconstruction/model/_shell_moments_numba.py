"""Weighted moments of one or two cubes over the shells of a cube, in one pass over memory."""

from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray


@njit(nogil=True, parallel=True, cache=True)
def sums(shell, weight, out):  # type: ignore[no-untyped-def]
    """out (planes, shells) += weight of every voxel of a plane; shell, weight : (planes, voxels)."""
    for x in prange(shell.shape[0]):
        for v in range(shell.shape[1]):
            out[x, shell[x, v]] += weight[x, v]


@njit(nogil=True, parallel=True, cache=True)
def means(shell, a, weight, out):  # type: ignore[no-untyped-def]
    """out (planes, shells, 2) += w, w a."""
    for x in prange(shell.shape[0]):
        for v in range(shell.shape[1]):
            s, w = shell[x, v], np.float64(weight[x, v])
            out[x, s, 0] += w
            out[x, s, 1] += w * a[x, v]


@njit(nogil=True, parallel=True, cache=True)
def products(shell, a, b, weight, out):  # type: ignore[no-untyped-def]
    """out (planes, shells, 6) += w, w a, w b, w a b, w a a, w b b."""
    for x in prange(shell.shape[0]):
        for v in range(shell.shape[1]):
            s, w = shell[x, v], np.float64(weight[x, v])
            i, j = np.float64(a[x, v]), np.float64(b[x, v])
            moment = out[x, s]
            moment[0] += w
            moment[1] += w * i
            moment[2] += w * j
            moment[3] += w * i * j
            moment[4] += w * i * i
            moment[5] += w * j * j


def shell_moments(
    shell: NDArray[np.uint16], n_shells: int, cubes: list[Any], weight: Any, is_half: bool
) -> NDArray[np.float64]:
    """(shells, 1, 2 or 6) float64 for no, one or two cubes; planes are added in a fixed order.

    is_half : whether all but the first plane have a mirror image, which counts, too.
    """
    planes = len(shell)
    of_voxel, *values, w = (
        np.ascontiguousarray(cube).reshape(planes, -1) for cube in (shell, *cubes, weight)
    )
    out = np.zeros((planes, n_shells, (1, 2, 6)[len(values)]))
    if len(values) == 2:
        products(of_voxel, values[0], values[1], w, out)
    elif values:
        means(of_voxel, values[0], w, out)
    else:
        sums(of_voxel, w, out[..., 0])
    if is_half:
        out[1:] *= 2
    return np.asarray(out.sum(axis=0))


def spread(curve: NDArray[np.float32], shell: NDArray[np.uint16]) -> NDArray[np.float32]:
    """curve[shell]."""
    out = np.empty(shell.shape, np.float32)
    spread_planes(curve, shell.reshape(len(shell), -1), out.reshape(len(shell), -1))
    return out


@njit(nogil=True, parallel=True, cache=True)
def spread_planes(curve, shell, out):  # type: ignore[no-untyped-def]
    """The same, plane by plane."""
    for x in prange(len(shell)):
        for v in range(shell.shape[1]):
            out[x, v] = curve[shell[x, v]]
