"""Hand a live map over to a batch run, which begins with it instead of at random."""

from __future__ import annotations

import os

from orienteer.errors import FileError, OrienteerError
from orienteer.reconstruction.emc import Emc
from orienteer.reconstruction.handing_over import LearntMap, begin_from
from orienteer.run.arguments import as_folder
from orienteer.run.checkpoint import load_checkpoint
from orienteer.run.directory import RunDirectory
from orienteer.run.method import Method
from orienteer.run.run import Run


def read_map(folder: str | os.PathLike[str]) -> LearntMap:
    """What a growing reconstruction had learnt at its last checkpoint; it may still be running."""
    directory = RunDirectory(as_folder(folder))
    checkpoint, _ = load_checkpoint(directory.path, directory.describe()["run_id"])
    if checkpoint is None or "map/models" not in checkpoint.state:
        raise FileError(
            directory.path,
            "holds no map that has grown with its data." if checkpoint else "has no map yet.",
            "Give the map of a live run, RUN/map.",
        )
    return LearntMap.from_state(checkpoint.state)


def hand_over(run: Run, folder: str | os.PathLike[str]) -> None:
    """Let a run of EMC begin with the map of a folder; a run that has begun already is left unchanged.

    The map is only read: if it is still growing, it continues.
    """
    if run.method != "emc":
        raise OrienteerError(
            f"a map can be handed over only to EMC, but this run uses {run.method}.", "Give --method emc."
        )
    if run.iteration:
        return
    learnt = read_map(folder)

    def begin(method: Method) -> None:
        assert isinstance(method, Emc)
        begin_from(method, learnt)
        method.course.has_start = True

    run.begin_with(begin)
