"""``output_NNN.h5`` as Dragonfly writes it after every iteration, for programs that read such files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, to_numpy
from orienteer.errors import OrienteerError
from orienteer.orientation.dragonfly import to_dragonfly
from orienteer.volume.volume import Volume


def write_dragonfly_output(
    path: str | os.PathLike[str],
    volumes: Sequence[Volume],
    columns: Mapping[str, Array],
    n_rotations: int | None = None,
) -> None:
    """Write models and the best orientation of each frame in Dragonfly's layout.

    Dragonfly names an orientation by its row in a list of quaternions.  The list in this file holds, once
    each, the orientations that are the best one of some frame; the weights are the shares of frames.  A frame
    that shows no model (``model`` -1) has the orientation -1 and counts for no model.

    volumes : one per model, cubes of one size.  An even edge gets one more plane, so that it is odd and the
        centre voxel stays; voxels that were never measured become 0.
    columns : ``quaternion`` (N, 4), and if known ``model``, ``fluence``, ``log_likelihood``, ``perplexity``
        (N,).
    n_rotations : number of rotations that were compared; needed for the mutual information.
    """
    from orienteer.compute.hdf5_writing import new_hdf5

    models = np.stack([_odd_cube(volume) for volume in volumes])
    known = {name: to_numpy(column) for name, column in columns.items()}
    quaternions = to_dragonfly(known["quaternion"])
    rotations, rotation = np.unique(quaternions, axis=0, return_inverse=True)
    rotation = rotation.reshape(-1)
    model = known.get("model", np.zeros(len(rotation), np.int64))
    shows = model >= 0
    weights = np.bincount(rotation[shows], minlength=len(rotations)) / max(1, int(shows.sum()))
    datasets: dict[str, NDArray[Any]] = {
        "intens": models,
        "orientations": np.where(shows, rotation * len(models) + model, -1).astype(np.int32),
        "quaternions": np.column_stack([rotations, weights]),
    }
    if "log_likelihood" in known:
        datasets["likelihood"] = known["log_likelihood"].astype(np.float64)
    if "fluence" in known:
        datasets["scale"] = known["fluence"].astype(np.float64)
    if "perplexity" in known and n_rotations:
        # Information about the orientation: entropy before minus entropy after, in nats.
        datasets["mutual_info"] = np.log(n_rotations) - np.log(np.maximum(known["perplexity"], 1.0))
    if len(models) > 1:
        datasets["occupancies"] = np.eye(len(models))[model] * shows[:, None]
    with new_hdf5(path) as file:
        for name, values in datasets.items():
            file.create_dataset(name, data=values)


def _odd_cube(volume: Volume) -> NDArray[np.float64]:
    if len(set(volume.shape)) != 1:
        raise OrienteerError(
            f"Dragonfly's models are cubes, but this one is {volume.shape}.", "Switch dragonfly_output off."
        )
    values = np.nan_to_num(to_numpy(volume.values).astype(np.float64), nan=0.0)
    return np.pad(values, (0, 1 - volume.shape[0] % 2))
