"""Masks of CXI files: what each bit says about a pixel, and how the pixel may then be used.

A whole-number ``mask`` holds bits, and 0 is a perfect pixel (F. R. N. C. Maia, Nature Methods 9, 854 (2012);
bit for bit as Cheetah, Condor and Owl use them):

====== ============================== ===========
bit    meaning                        use
====== ============================== ===========
0x1    invalid                        never
0x2    saturated                      never
0x4    hot                            never
0x8    dead                           never
0x10   shadowed                       never
0x20   in the peak mask               as if unset
0x40   to be ignored                  never
0x80   bad                            never
0x100  outside the resolution limits  merge only
0x200  missing                        never
0x400  noisy (in the halo)            never
0x800  artefact corrected             as if unset
0x1000 artefact correction failed     as if unset
0x2000 peak for the hit finder        as if unset
0x4000 photon background corrected    as if unset
====== ============================== ===========

CXI does not define higher bits: Cheetah marks the jet with 0x8000, facilities their own defects; they mean
"never".  A *boolean* ``mask`` comes from analysis scripts and, like ``good_pixels``, is true where a pixel is
good.  There is one mask for all frames, or one for each frame.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from orienteer.compute.hdf5_reading import check_stored, get_dataset, read_array
from orienteer.detector.masks import PixelUse, check_mask, combine_masks, mask_from_good
from orienteer.errors import FileError
from orienteer.source.cxi_layout import DETECTOR, has_rows, rows_to_check

PIXEL_IS_BAD, PIXEL_IS_OUT_OF_RESOLUTION = 0x80, 0x100
_STATUS = 0x20 | 0x800 | 0x1000 | 0x2000 | 0x4000
_NEVER = ~(_STATUS | PIXEL_IS_OUT_OF_RESOLUTION)
MASK_PATHS = (f"{DETECTOR}/mask", "entry_1/data_1/mask", "entry_1/image_1/mask")
# The three levels of a mask for all frames, which Orienteer adds if it writes no detector.
PIXEL_USE = f"{DETECTOR}/pixel_use"


def levels_of(mask: NDArray[Any]) -> NDArray[np.uint8]:
    """Three-level mask from a CXI mask: a boolean mask is true for good pixels, any other holds bits.

    >>> levels_of(np.array([0, 0x4, 0x20, 0x100, 0x104]))
    array([0, 2, 0, 1, 2], dtype=uint8)
    """
    if mask.dtype == bool:
        return mask_from_good(mask)
    bits = mask.astype(np.int64)
    levels = np.where(bits & PIXEL_IS_OUT_OF_RESOLUTION, PixelUse.MERGE_ONLY, PixelUse.ORIENT_AND_MERGE)
    return np.where(bits & _NEVER, PixelUse.NEVER, levels).astype(np.uint8)


def bits_of(levels: NDArray[np.uint8]) -> NDArray[np.uint16]:
    """CXI bits that say the same as a three-level mask: :func:`levels_of` gives it back."""
    table = np.array([0, PIXEL_IS_OUT_OF_RESOLUTION, PIXEL_IS_BAD], np.uint16)
    return table[np.minimum(levels, PixelUse.NEVER)]


def find_masks(
    path: Path, file: h5py.File, n_frames: int, frame_shape: tuple[int, ...]
) -> tuple[NDArray[np.uint8] | None, h5py.Dataset | None]:
    """The mask (P,) for the whole file, and the dataset with a mask for each frame; None if missing."""
    constant: list[NDArray[np.uint8]] = []
    per_frame = None
    for place in MASK_PATHS:
        mask = file.get(place)
        if not isinstance(mask, h5py.Dataset):
            continue
        if mask.dtype.kind not in "biu" or (
            mask.shape != frame_shape and not (mask.shape[1:] == frame_shape and has_rows(mask, n_frames))
        ):
            raise FileError(
                path,
                f"'/{place}' is {mask.dtype} of shape {mask.shape} for frames of {frame_shape}.",
                "Write a mask of whole numbers, one for each pixel of a frame, or of all frames.",
            )
        check_stored(mask, None if mask.shape == frame_shape else rows_to_check(mask, n_frames), foreign=True)
        if mask.shape == frame_shape:
            constant.append(levels_of(read_array(mask)))
        else:
            per_frame = mask
        break
    good = file.get(f"{DETECTOR}/good_pixels")
    if isinstance(good, h5py.Dataset):
        if good.dtype.kind not in "biu" or good.shape not in (frame_shape, (1, *frame_shape)):
            raise FileError(
                path,
                f"good_pixels is {good.dtype} of shape {good.shape} for frames of {frame_shape}.",
                "Write one whole number for each pixel of a frame: 1 for good ones.",
            )
        check_stored(good, foreign=True)
        constant.append(mask_from_good(read_array(good).reshape(frame_shape)))
    if PIXEL_USE in file:
        levels = read_array(get_dataset(file, PIXEL_USE, "u", frame_shape))
        constant.append(check_mask(levels, frame_shape).reshape(frame_shape))
    return (combine_masks(*constant).reshape(-1) if constant else None), per_frame
