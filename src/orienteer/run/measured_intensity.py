"""The intensity of a run, NaN where no pixel has measured it."""

import numpy as np

from orienteer.compute.arrays import to_numpy
from orienteer.compute.words import counted
from orienteer.detector.masks import PixelUse
from orienteer.errors import OrienteerError
from orienteer.run.directory import RunDirectory
from orienteer.run.run import Run
from orienteer.volume.volume import Volume


def measured_intensity(run: Run, model: int = 0) -> Volume:
    """The intensity of a model as last saved, NaN inside the innermost pixels and beyond the outermost.

    Behind a beam stop and beyond the edge of the data a reconstruction only continues its radial mean.  That
    does no harm while frames are oriented, but phasing would take it for a measurement.

    model : counted from 0.
    """
    volumes = run.volumes()
    if not 0 <= model < len(volumes):
        raise OrienteerError(
            f"{run.path}: it holds {counted(len(volumes), 'model')}; model {model} was asked for.",
            "They count from 0.",
        )
    volume = volumes[model]
    step = volume.voxel_size[0]
    x, y, z = (axis**2 for axis in volume.axes())
    length = np.sqrt(x[:, None, None] + y[:, None] + z)
    innermost, outermost = pixel_range_inv_A(run)
    # A pixel measures voxels up to half a voxel away.  The limit at the outer edge is strict, because a voxel
    # there would be half extrapolated.
    hidden = (length < innermost - step / 2) | (length > outermost * (1 + 1e-6))
    values = to_numpy(volume.values)
    return volume.with_values(np.where(hidden, np.float32(np.nan), values)) if hidden.any() else volume


def pixel_range_inv_A(run: Run) -> tuple[float, float]:
    """Smallest and largest |q| of the pixels that a run has used; 0 and infinity if its files do not say."""
    resolution_A = float(getattr(run.settings, "resolution_A", 0.0))
    outermost = 1 / resolution_A if resolution_A else np.inf
    detector = RunDirectory(run.path).read_detector()
    given = run.described["input"]
    wavelength_A = given.get("wavelengths", {}).get("used_A", given.get("wavelength_A"))
    if detector is None or not isinstance(wavelength_A, (int, float)):
        return 0.0, outermost
    usable = detector.mask != PixelUse.NEVER
    if not usable.any():
        return 0.0, outermost
    length = np.linalg.norm(detector.q_inv_A(float(wavelength_A))[usable], axis=1)
    return float(length.min()), min(float(length.max()), outermost)
