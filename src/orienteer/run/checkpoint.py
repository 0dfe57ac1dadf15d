"""Checkpoints: the state of a method in an HDF5 file with a checksum, written whole or not at all.

Two are kept.  The new one is written under a third name; then the last one becomes the previous one, and the
new one the last.  At every instant at least one whole checkpoint has its name.  Layout: arrays lie under
``state/NAME``; ``plain`` holds the other values and the facts of the run as JSON; the attribute ``checksum``
is the BLAKE2b hash of everything, names, types and shapes included.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import is_on_gpu, to_numpy
from orienteer.compute.reading import writing
from orienteer.errors import FileError
from orienteer.run.method import State

FORMAT, VERSION = "orienteer-checkpoint", 1
LAST, PREVIOUS, NEW = "checkpoint.h5", "checkpoint_previous.h5", "checkpoint_new.h5"
_KINDS = "biufc"
_DAMAGED = "The file is damaged."


@dataclass(frozen=True)
class Checkpoint:
    """A state, and what else a run has to know to continue.

    run_id : the run it belongs to.
    """

    run_id: str
    iteration: int
    finished: bool
    reason: str
    state: State


def save_checkpoint(directory: Path, checkpoint: Checkpoint) -> None:
    """Put a new checkpoint in place; a failure leaves those that are there."""
    last, new = directory / LAST, directory / NEW
    write_checkpoint(new, checkpoint)
    with writing(last):
        if last.exists():
            os.replace(last, directory / PREVIOUS)
        os.replace(new, last)
        _sync_directory(directory)


def load_checkpoint(directory: Path, run_id: str) -> tuple[Checkpoint | None, str]:
    """The last good checkpoint of a run, and a sentence about one that is damaged, or "".

    None when there is none yet.  When all that are there are damaged, that is a FileError.
    """
    damaged: list[FileError] = []
    for name in (LAST, PREVIOUS):
        path = directory / name
        if not path.exists():
            continue
        try:
            checkpoint = read_checkpoint(path)
            if checkpoint.run_id != run_id:
                raise FileError(path, "belongs to another run.")
        except FileError as error:
            damaged.append(error)
            continue
        if not damaged:
            return checkpoint, ""
        return checkpoint, (
            f"{damaged[0].message} The run goes on from the checkpoint before it, "
            f"of iteration {checkpoint.iteration}."
        )
    if damaged:
        also = ", and there is no good one before it" if len(damaged) == 1 else ", nor the one before it"
        reason = damaged[0].reason.rstrip(".")
        raise FileError(
            damaged[0].path,
            f"{reason}{also}.",
            "Begin anew with --restart (restart=True), or in a new folder.",
        )
    return None, ""


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write one checkpoint file, whole or not at all."""
    from orienteer.compute.hdf5_writing import new_hdf5

    arrays, values = _sorted_out(checkpoint.state)
    facts = {
        "run_id": checkpoint.run_id,
        "iteration": int(checkpoint.iteration),
        "finished": bool(checkpoint.finished),
        "reason": checkpoint.reason,
        "values": values,
        "arrays": sorted(arrays),
    }
    text = json.dumps(facts, sort_keys=True).encode("ascii")
    with new_hdf5(path, libver="latest") as file:
        file.attrs["format"] = np.bytes_(FORMAT)
        file.attrs["version"] = VERSION
        file.attrs["checksum"] = np.bytes_(_checksum(text, arrays))
        file.create_dataset("plain", data=np.frombuffer(text, np.uint8))
        for name, array in arrays.items():
            file.create_dataset(f"state/{name}", data=array)


def read_checkpoint(path: Path) -> Checkpoint:
    """The checkpoint in a file; one that is not exactly what was written is a FileError."""
    from orienteer.compute.hdf5_reading import get_dataset, open_hdf5, read_array, read_numbers, read_text

    with open_hdf5(path, "checkpoint") as file:
        if read_text(file, "format") != FORMAT:
            raise FileError(path, "is not a checkpoint of Orienteer.")
        version = int(read_numbers(file, "version", "iu"))
        if version != VERSION:
            raise FileError(
                path, f"has layout version {version}; this Orienteer reads {VERSION}.", "Update Orienteer."
            )
        text = read_array(get_dataset(file, "plain", "u", (None,))).tobytes()
        facts = json.loads(text)
        arrays = {name: read_array(get_dataset(file, f"state/{name}", _KINDS)) for name in facts["arrays"]}
        if _checksum(text, arrays) != read_text(file, "checksum"):
            raise FileError(path, "has a wrong checksum.", _DAMAGED)
        return Checkpoint(
            facts["run_id"],
            facts["iteration"],
            facts["finished"],
            facts["reason"],
            {**facts["values"], **arrays},
        )


def _sorted_out(state: State) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arrays of a state, and its plain values."""
    arrays: dict[str, NDArray[Any]] = {}
    values: dict[str, Any] = {}
    for name, value in state.items():
        if isinstance(value, np.generic):
            values[name] = value.item()
        elif isinstance(value, np.ndarray) or is_on_gpu(value):
            arrays[name] = np.asarray(to_numpy(value), order="C")
            if arrays[name].dtype.kind not in _KINDS:
                raise TypeError(f"the state '{name}' is an array of {arrays[name].dtype}")
        elif value is None or isinstance(value, (bool, int, float, str)):
            values[name] = value
        else:
            raise TypeError(f"the state '{name}' is a {type(value).__name__}")
    return arrays, values


def _checksum(text: bytes, arrays: Mapping[str, NDArray[Any]]) -> str:
    checksum = hashlib.blake2b(text, digest_size=32)
    for name in sorted(arrays):
        array = np.asarray(arrays[name], order="C")
        checksum.update(f"{name} {array.dtype.str} {array.shape}".encode())
        checksum.update(array.reshape(-1).view(np.uint8).data if array.size else b"")
    return checksum.hexdigest()


def _sync_directory(directory: Path) -> None:
    """Let the new names outlast a power failure."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
