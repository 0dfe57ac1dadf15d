"""The intensity of a run with nothing where no pixel has looked."""

import numpy as np

from orienteer.compute.arrays import to_numpy
from orienteer.detector.masks import PixelUse
from orienteer.errors import OrienteerError
from orienteer.run.directory import RunDirectory
from orienteer.run.run import Run
from orienteer.volume.volume import Volume


def measured_intensity(run: Run, model: int = 0) -> Volume:
    """The intensity of a model as last saved, NaN inside the innermost pixels.

    Behind a beam stop a reconstruction only carries on its radial mean, which is as good as any other value
    while frames are oriented, and a false statement about the particle when the intensity is phased.
    """
    volumes = run.volumes()
    if not 0 <= model < len(volumes):
        raise OrienteerError(
            f"{run.path}: there are {len(volumes)} models; model {model} was asked for.",
            "They count from 0.",
        )
    volume = volumes[model]
    step = volume.voxel_size[0]
    x, y, z = (axis**2 for axis in volume.axes())
    length = np.sqrt(x[:, None, None] + y[:, None] + z)
    # A pixel speaks for voxels up to half a voxel away.
    hidden = length < innermost_inv_A(run) - step / 2
    values = to_numpy(volume.values)
    return volume.with_values(np.where(hidden, np.float32(np.nan), values)) if hidden.any() else volume


def innermost_inv_A(run: Run) -> float:
    """Smallest |q| of the pixels that a run has used; 0 where its files do not tell."""
    detector = RunDirectory(run.path).read_detector()
    wavelength_A = run.described["input"].get("wavelength_A")
    if detector is None or not isinstance(wavelength_A, (int, float)):
        return 0.0
    usable = detector.mask != PixelUse.NEVER
    if not usable.any():
        return 0.0
    return float(np.linalg.norm(detector.q_inv_A(float(wavelength_A))[usable], axis=1).min())
