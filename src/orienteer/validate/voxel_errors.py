"""The errors of the voxels of a run, stored in its folder once they are computed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from orienteer.reconstruction.frames.pixels import PixelTable, pixel_table
from orienteer.run.checkpoint import load_checkpoint
from orienteer.run.files import VALIDATION
from orienteer.validate.bootstrap import bootstrap_intensity, relative_error
from orienteer.validate.result import VoxelErrors
from orienteer.validate.states import only_state
from orienteer.volume.opening import open_volume, write_volume

if TYPE_CHECKING:
    from orienteer.compute.arrays import DeviceName
    from orienteer.run.run import Run
    from orienteer.run.validation_settings import ValidationSettings

# The merge of all frames at their poses, without a filter, and the standard deviation of its voxels.
MERGED, ERRORS = "intensity_merged.h5", "intensity_error.h5"


def voxel_errors(run: Run, settings: ValidationSettings, device: DeviceName) -> VoxelErrors | None:
    """The errors of the voxels of all frames merged at their poses; stored ones are used if still valid."""
    if not settings.replicates:
        return None
    made_from: dict[str, Any] = {
        "replicates": settings.replicates, "seed": run.seed, "run_id": run.described["run_id"],
        "iteration": run.iteration,
    }  # fmt: skip
    places = run.path / VALIDATION / MERGED, run.path / VALIDATION / ERRORS
    kept = [open_volume(place) for place in places if place.exists()]
    if len(kept) < 2 or any(dict(volume.metadata) != made_from for volume in kept):
        pixels = pixel_table(run.source)
        found = bootstrap_intensity(
            run.source, only_state(run.orientations(), 0), run.volumes()[0], pixels,
            group=run.group, background=_background(run, pixels),
            replicates=settings.replicates, seed=run.seed, device=device,
        )  # fmt: skip
        kept = [replace(volume, metadata=made_from) for volume in (found.intensity, found.error)]
        for place, volume in zip(places, kept, strict=True):
            write_volume(place, volume)
    return VoxelErrors(settings.replicates, run.seed, *relative_error(*kept))


def _background(run: Run, pixels: PixelTable) -> NDArray[np.float64] | None:
    """Background of the run in photons per shot, (U,); None: none."""
    checkpoint, _ = load_checkpoint(run.path, run.described["run_id"])
    values = np.zeros(0) if checkpoint is None else np.asarray(checkpoint.state.get("noise/background", []))
    return values.astype(np.float64) if len(values) == len(pixels) else None
