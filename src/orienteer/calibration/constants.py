"""Constants of a calibration: what each pixel reads in the dark, and how much a photon adds.

The HDF5 file holds ``pedestal_adu`` and ``gain_adu`` (ADU per photon), one of which may be missing, and
``noise_adu`` if it was measured.  Each has one value for each pixel, in the shape of a frame or flat; for
detectors that switch their gain, it has one such array for each stage: (S, P).
"""

import math
import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orienteer.errors import FileError, GeometryMismatch, OrienteerError
from orienteer.source.patterns import Patterns

PEDESTAL, GAIN, NOISE = "pedestal_adu", "gain_adu", "noise_adu"
LARGEST_N_STAGES = 8
_PIXELS_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class Constants:
    """The constants of S gain stages of P pixels.

    pedestal_adu : (S, P) float32, or None if frames have none.
    gain_adu : (S, P) float32, ADU per photon, or None if it is not known for each pixel.
    noise_adu : (S, P) float32, root mean square in the dark, or None if it was not measured.
    """

    pedestal_adu: NDArray[np.float32] | None = None
    gain_adu: NDArray[np.float32] | None = None
    noise_adu: NDArray[np.float32] | None = None


def measure_pedestal(dark: Patterns) -> Constants:
    """Pedestal and noise (1, P) of dark frames.

    The noise follows from the quartiles.  The pedestal is the mean of the values within four times the noise
    from the median.  So a few cosmic rays or photons change neither.
    """
    if len(dark) < 2:
        raise OrienteerError(
            f"a pedestal and its noise cannot be measured from {len(dark)} dark frames.",
            "Take at least a hundred.",
        )
    frames = dark.dense()
    pedestal, noise = np.empty((2, 1, dark.n_pixels), np.float32)
    # Some pixels at a time: in double precision, all at once need several times the memory of the frames.
    for first in range(0, dark.n_pixels, _PIXELS_AT_ONCE):
        part = slice(first, first + _PIXELS_AT_ONCE)
        seen = frames[:, part]
        low, middle, high = np.percentile(seen, (25, 50, 75), axis=0)
        noise[0, part] = (high - low) / 1.349
        # Quartiles of whole numbers are coarse, so the limit is one unit wider.
        near = np.abs(seen - middle) <= 4 * noise[0, part] + 1
        pedestal[0, part] = np.where(near, seen, 0).sum(axis=0, dtype=np.float64) / near.sum(axis=0)
    return Constants(pedestal, None, noise)


def write_constants(path: str | os.PathLike[str], constants: Constants) -> None:
    """Write the constants to an HDF5 file."""
    from orienteer.compute.hdf5_writing import new_hdf5

    with new_hdf5(path, libver="latest") as file:
        for name in (PEDESTAL, GAIN, NOISE):
            values = getattr(constants, name)
            if values is not None:
                file.create_dataset(name, data=values, chunks=values.shape, fletcher32=True)


def read_constants(path: str | os.PathLike[str], n_pixels: int) -> Constants:
    """The constants in an HDF5 file, for frames of this many pixels."""
    from orienteer.compute.hdf5_reading import open_hdf5, read_whole

    found: dict[str, NDArray[np.float32]] = {}
    with open_hdf5(path, "calibration file") as file:
        for name in (PEDESTAL, GAIN, NOISE):
            if name in file:
                values = read_whole(file, name, "iuf", None, n_pixels * LARGEST_N_STAGES)
                # Stages must be the first axis: as the last one, they would be mixed up with pixels.
                if values.size == 0 or n_pixels not in (values.size, math.prod(values.shape[1:])):
                    raise GeometryMismatch(
                        f"{path} has '{name}' of shape {values.shape}, but frames have {n_pixels} pixels.",
                        "Give the constants of this detector; gain stages are the first axis.",
                    )
                found[name] = values.reshape(-1, n_pixels).astype(np.float32)
    if PEDESTAL not in found and GAIN not in found:
        raise FileError(
            path,
            f"has neither '{PEDESTAL}' nor '{GAIN}'.",
            "Measure a pedestal from dark frames with measure_pedestal of orienteer.calibration.constants.",
        )
    if GAIN in found and not (found[GAIN] > 0).all():
        raise FileError(
            path,
            f"has values in '{GAIN}' that are not positive.",
            "Give dead pixels a gain of 1, and mask them.",
        )
    return Constants(found.get(PEDESTAL), found.get(GAIN), found.get(NOISE))
