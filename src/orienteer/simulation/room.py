"""Check that disk and memory have room for the frames of an experiment, before the first one is made."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from orienteer.compute.machine import memory_GiB
from orienteer.compute.words import counted, in_bytes
from orienteer.errors import FileError, SettingsError
from orienteer.simulation.experiment import Experiment
from orienteer.source.opening import writer_for

# Largest number of bytes of a frame in any format: per pixel, and for all its columns.
_MOST_OF_A_PIXEL, _MOST_OF_COLUMNS = 16, 4096
# A file that certainly takes less than this share of the free disk is not checked further.
_LITTLE = 0.1
# Bytes of memory per pixel while frames are made: expected photons, drawn photons and one copy.
_HELD_OF_A_PIXEL = 12
# Number of pixels in the trial frames that are written to measure their size; fewest and most trial frames.
_LOOKED_AT, _FEWEST, _MOST = 1 << 21, 4, 128


def check_room(experiment: Experiment, out: Path) -> str:
    """A sentence about the disk space that the file will take; empty if it is little.

    Raises an error if the file does not fit on the disk, or a batch not in memory.
    """
    _check_memory(experiment)
    n_frames, free = len(experiment), shutil.disk_usage(out.absolute().parent).free
    if n_frames * (_MOST_OF_A_PIXEL * experiment.n_pixels + _MOST_OF_COLUMNS) < _LITTLE * free:
        return ""
    needed = expected_bytes(experiment, out)
    if needed <= free:
        return f"The file will take about {in_bytes(needed)} of the {in_bytes(free)} free on the disk."
    fits = int(0.9 * n_frames * free / needed)
    raise FileError(
        out,
        f"{counted(n_frames, 'frame')} take about {in_bytes(needed)} in this format, but only "
        f"{in_bytes(free)} is free on the disk.",
        f"Write to another disk, or fewer frames: --frames {fits}." if fits else "Write to another disk.",
    )


def expected_bytes(experiment: Experiment, out: Path) -> float:
    """Expected size of the file in bytes, from two small trial files in a temporary folder."""
    few = min(_MOST, max(_FEWEST, _LOOKED_AT // experiment.n_pixels))
    with TemporaryDirectory() as folder:
        lengths = []
        for n_frames in (few, 2 * few):
            path = Path(folder) / out.name
            with writer_for(path, like=experiment) as writer:
                writer.append(experiment.patterns(0, n_frames))
            lengths.append(path.stat().st_size)
    each = (lengths[1] - lengths[0]) / few
    return lengths[0] + each * (len(experiment) - few)


def _check_memory(experiment: Experiment) -> None:
    n_frames = min(experiment.frames_per_batch, len(experiment))
    needed, free = n_frames * experiment.n_pixels * _HELD_OF_A_PIXEL / 2**30, memory_GiB()[1]
    if experiment.device == "cpu" and needed > free:
        raise SettingsError(
            f"a batch of {counted(n_frames, 'frame')} takes about {needed:.3g} GiB of memory, but only "
            f"{free:.3g} GiB are free.",
            "Give a smaller --batch, or fewer pixels.",
        )
