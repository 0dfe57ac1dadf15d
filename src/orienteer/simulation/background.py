"""Background: photons that did not scatter from the particle."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orienteer.compute.reading import read_head, reading
from orienteer.detector.detector import Detector
from orienteer.detector.masks import PixelUse
from orienteer.errors import GeometryMismatch, OrienteerError


def flat_background(detector: Detector, photons: float, slope: float = 0.0) -> NDArray[np.float32]:
    """Expected background photons per pixel (P,), which sum to ``photons`` over the used pixels.

    slope : relative change along x from the centre of the detector to its edge, -1 to 1; 0 is flat.
    """
    x = detector.positions_m[:, 0]
    used = (detector.mask < PixelUse.NEVER) & (detector.solid_angle_sr > 0)
    if not used.any():
        raise OrienteerError(
            "every pixel of the detector is masked, so no pixel can have a background.",
            "Mask fewer pixels.",
        )
    middle, half = (x[used].max() + x[used].min()) / 2, max(np.ptp(x[used]) / 2, 1e-300)
    level = np.where(used, 1 + slope * (x - middle) / half, 0.0)
    return np.asarray(photons * level / level.sum(), np.float32)


def checked_background(values: ArrayLike, detector: Detector) -> NDArray[np.float32]:
    """Expected background photons per pixel (P,), checked, and set to zero in pixels that are never used."""
    try:
        background = np.asarray(values, np.float32)
    except (TypeError, ValueError) as error:
        raise OrienteerError(
            f"the background must be photons for each pixel ({error}).",
            "Give an array of numbers, one for each pixel.",
        ) from error
    if background.size != detector.n_pixels:
        raise GeometryMismatch(
            f"the background has shape {background.shape}, but detector '{detector.name}' has "
            f"{detector.n_pixels} pixels ({detector.frame_shape}).",
            "Give one number for each pixel of the detector.",
        )
    background = np.where(detector.mask < PixelUse.NEVER, background.reshape(-1), np.float32(0))
    if not np.all((background >= 0) & (background < np.inf)):
        raise OrienteerError(
            "the background must be a finite number of photons >= 0 in every used pixel.",
            "Replace the values that are NaN or negative, or mask their pixels.",
        )
    return background


def read_background(path: str, detector: Detector) -> NDArray[np.float32]:
    """The background of a ``.npy`` file of expected photons per pixel."""
    read_head(path, "background file")
    with reading(path, "background file") as file:
        # Memory-mapped, so that a shape larger than the file is an error before anything is allocated.
        values = np.load(file, mmap_mode="r", allow_pickle=False)
        if not isinstance(values, np.ndarray) or values.dtype.kind not in "iuf":
            raise OrienteerError("does not hold one array of numbers.", "Save one array with numpy.save.")
        return checked_background(values, detector)
