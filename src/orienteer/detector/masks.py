"""Masks: what each pixel may be used for, in three levels."""

from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orienteer.errors import OrienteerError


class PixelUse(IntEnum):
    """What a pixel may be used for; a larger value is stricter.

    >>> max(PixelUse.MERGE_ONLY, PixelUse.NEVER)
    <PixelUse.NEVER: 2>
    """

    ORIENT_AND_MERGE = 0
    MERGE_ONLY = 1
    NEVER = 2


def check_mask(mask: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """The mask as (P,) uint8 levels, P = product of ``shape``.

    mask : levels 0, 1, 2 in the shape of the frame or flat.  A boolean mask is refused, because half of the
        field writes True for good and half for bad: use :func:`mask_from_good` or :func:`mask_from_bad`.
    """
    levels = np.asarray(mask)
    if levels.dtype == bool:
        raise OrienteerError(
            "the mask is boolean, which does not say whether True is good or bad.",
            "Use mask_from_good or mask_from_bad of orienteer.detector.masks.",
        )
    n_pixels = int(np.prod(shape))
    if levels.shape not in (tuple(shape), (n_pixels,)):
        raise OrienteerError(
            f"the mask has shape {levels.shape}; the frame has shape {tuple(shape)}.",
            "Give one level for each pixel of a frame.",
        )
    if levels.dtype.kind not in "iu" or (levels.size and (levels.min() < 0 or levels.max() > PixelUse.NEVER)):
        raise OrienteerError(
            f"the mask ({levels.dtype}) holds other values than the levels 0, 1 and 2.",
            "0: orient and merge; 1: merge only; 2: never use.",
        )
    return levels.reshape(-1).astype(np.uint8)


def combine_masks(*masks: ArrayLike) -> NDArray[np.uint8]:
    """The strictest use that any of the masks allows: their maximum, pixel by pixel.

    >>> combine_masks([0, 1, 2], [1, 0, 0])
    array([1, 1, 2], dtype=uint8)
    """
    levels = [np.asarray(mask) for mask in masks]
    shapes = {level.shape for level in levels}
    if len(shapes) != 1:
        raise OrienteerError(f"masks of different shapes cannot be combined: {sorted(shapes)}.")
    return np.asarray(np.maximum.reduce(levels)).astype(np.uint8)


def mask_from_good(good: ArrayLike) -> NDArray[np.uint8]:
    """Levels from a mask that is true (or non-zero) where a pixel is good.

    >>> mask_from_good([True, False])
    array([0, 2], dtype=uint8)
    """
    return np.where(np.asarray(good).astype(bool), PixelUse.ORIENT_AND_MERGE, PixelUse.NEVER).astype(np.uint8)


def mask_from_bad(bad: ArrayLike) -> NDArray[np.uint8]:
    """Levels from a mask that is true (or non-zero) where a pixel is bad, as the bit masks of CXI files are.

    >>> mask_from_bad([0, 4])
    array([0, 2], dtype=uint8)
    """
    return np.where(np.asarray(bad).astype(bool), PixelUse.NEVER, PixelUse.ORIENT_AND_MERGE).astype(np.uint8)


def mask_from_radii(
    positions_m: NDArray[Any], never_within_m: float = 0.0, merge_only_beyond_m: float = np.inf
) -> NDArray[np.uint8]:
    """Levels by the distance of a pixel's centre from the beam axis.

    positions_m : (P, 3) pixel centres.
    never_within_m : radius of the beam stop; centres strictly inside it are never used.
    merge_only_beyond_m : pixels with centres strictly outside this radius are merged but do not orient.

    >>> mask_from_radii(np.array([[0.0, 0.001, 1], [0, 0.01, 1], [0.1, 0, 1]]), 0.005, 0.05)
    array([2, 0, 1], dtype=uint8)
    """
    radius_m = np.hypot(positions_m[:, 0], positions_m[:, 1])
    # Rounding must not put a centre that lies on the circle on either side of it.
    slack = 1e-9
    outside = np.where(radius_m > merge_only_beyond_m * (1 + slack), PixelUse.MERGE_ONLY, 0)
    inside = np.where(radius_m < never_within_m * (1 - slack), PixelUse.NEVER, 0)
    return combine_masks(outside, inside)
