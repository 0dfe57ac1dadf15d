"""Centres of HEALPix pixels, which have equal areas on the sphere; each level divides every pixel in four.

Górski et al., Astrophys. J. 622, 759 (2005); the projection is that of Calabretta & Roukema, MNRAS 381, 865
(2007): the sphere unrolled on a plane, where the twelve base pixels and all their divisions are squares
standing on a corner.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

_QUARTER = np.pi / 4


def pixel_centres(level: int, pixel: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Polar angle and azimuth in radians of pixels with nside = 2^level, numbered NESTED.

    The four children of pixel p are 4 p to 4 p + 3 on the next level.

    >>> polar, azimuth = pixel_centres(0, [0, 4])
    >>> np.cos(polar).round(6) + 0.0, azimuth / np.pi
    (array([0.666667, 0.      ]), array([0.25, 0.  ]))
    """
    n_side = 1 << level
    base, inside = np.divmod(np.asarray(pixel, dtype=np.int64), n_side**2)
    # Even bits of the number within the base pixel count along its right edge, odd bits along the left one.
    right = (_even_bits(inside) + 0.5) / n_side
    left = (_even_bits(inside >> 1) + 0.5) / n_side

    row = base // 4  # north, equator, south
    x = _QUARTER * (2 * (base % 4) + (row != 1) + right - left)
    y = _QUARTER * ((1 - row) + right + left - 1)

    in_cap = np.abs(y) > _QUARTER
    width = np.where(in_cap, 2 - np.abs(y) / _QUARTER, 1.0)  # how far the plane's cap triangle has narrowed
    cos_polar = np.where(in_cap, np.sign(y) * (1 - width**2 / 3), y * 8 / (3 * np.pi))
    triangle_centre = (2 * np.floor(x / (2 * _QUARTER)) + 1) * _QUARTER
    azimuth = np.where(in_cap, triangle_centre + (x - triangle_centre) / width, x)
    return np.arccos(cos_polar), np.mod(azimuth, 2 * np.pi)


def _even_bits(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number that bits 0, 2, 4, ... of each number form."""
    gathered = np.zeros_like(numbers)
    for bit in range(16):
        gathered |= ((numbers >> (2 * bit)) & 1) << bit
    return gathered
