"""Shards: the large arrays of a checkpoint in several files, so that several ranks write them at once.

Every rank has the whole state, so each can write any part of it.  An array is treated as one long row and cut
into pieces, one per shard, so its shape need not be divisible.  The number of shards grows with the size of
the state, up to the number of ranks, so that a thousand ranks do not make a thousand small files.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.atomic import unwritable
from orienteer.compute.reading import writing
from orienteer.errors import FileError
from orienteer.run.crew import Crew
from orienteer.run.state_file import read_state_file, sync_directory, write_state_file

FOLDER = "checkpoint_shards"
FORMAT, VERSION = "orienteer-checkpoint-shard", 1
# There is one shard per so many bytes, and arrays smaller than a hundredth of that are not divided.
SHARD_BYTES = 64 << 20
_SMALL = 100


@dataclass(frozen=True)
class Division:
    """What the first file of a checkpoint holds, and which other files it names.

    own : its arrays; of a divided array, the first piece.
    divided : shape of each divided array by name.
    shards : name and checksum of each further file, in the order of their pieces.
    """

    own: Mapping[str, NDArray[Any]]
    divided: Mapping[str, list[int]]
    shards: Sequence[Mapping[str, str]]


def whole_division(arrays: Mapping[str, NDArray[Any]]) -> Division:
    """Everything in one file."""
    return Division(arrays, {}, ())


def save_shards(
    directory: Path, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], crew: Crew
) -> Division:
    """Write all files except the first, each by one rank; all ranks call this with the same arrays."""
    large = {name: array for name, array in arrays.items() if array.nbytes >= SHARD_BYTES // _SMALL}
    n_shards = min(crew.size, sum(array.nbytes for array in large.values()) // SHARD_BYTES + 1)
    if n_shards == 1:
        return whole_division(arrays)
    token = crew.by_leader(lambda: _make_folder(directory))
    names = [f"{facts['iteration']:06d}_{token}_{number:03d}.h5" for number in range(n_shards)]
    # Spread the shards over the ranks, and so over the nodes; the leader has the first.
    own = next((n for n in range(1, n_shards) if n * crew.size // n_shards == crew.rank), 0)

    def write() -> str:
        if own == 0:
            return ""
        pieces = _pieces(large, own, n_shards)
        about = {"run_id": facts["run_id"], "iteration": facts["iteration"], "arrays": sorted(pieces)}
        checksum = write_state_file(directory / FOLDER / names[own], FORMAT, VERSION, about, pieces)
        with writing(directory / FOLDER):  # the name must be on the disk before a checkpoint refers to it
            sync_directory(directory / FOLDER)
        return checksum

    try:
        checksum = crew.together(write)
    except Exception:
        remove_shards(directory, [{"name": names[own]}])
        raise
    written = {number: text for number, text in crew.everyone((own, checksum)) if number}
    small = {name: array for name, array in arrays.items() if name not in large}
    return Division(
        {**small, **_pieces(large, 0, n_shards)},
        {name: list(array.shape) for name, array in large.items()},
        [{"name": names[number], "checksum": written[number]} for number in range(1, n_shards)],
    )


def join(
    directory: Path, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """All arrays of a checkpoint, with divided ones joined again.

    facts, arrays : of its first file; the facts name the other files.  A shard that is missing, damaged or
    from another checkpoint is a FileError.
    """
    pieces = {name: [arrays[name]] for name in facts.get("divided", {})}
    for shard in facts.get("shards", ()):
        path = directory / FOLDER / shard["name"]
        if not path.exists():
            raise FileError(
                path,
                "is missing; it is a part of the checkpoint.",
                "Put it back, or begin anew with --restart.",
            )
        about, found, checksum = read_state_file(path, FORMAT, VERSION)
        if checksum != shard["checksum"] or about["run_id"] != facts["run_id"]:
            raise FileError(
                path, "belongs to another checkpoint.", "Put back its own part, or begin anew with --restart."
            )
        for name in pieces:
            pieces[name].append(found[name])
    joined = {name: np.concatenate(parts).reshape(facts["divided"][name]) for name, parts in pieces.items()}
    return {**arrays, **joined}


def remove_shards(directory: Path, shards: Iterable[Mapping[str, str]]) -> None:
    """Remove files of a checkpoint that was not put in place."""
    for shard in shards:
        with suppress(OSError):
            (directory / FOLDER / shard["name"]).unlink(missing_ok=True)


def remove_unnamed(directory: Path, named: set[str]) -> None:
    """Remove all shards but these, and their folder when nothing is left in it."""
    folder = directory / FOLDER
    if not folder.is_dir():
        return
    with suppress(OSError):  # files that stay only cost room
        for entry in folder.iterdir():
            if entry.name not in named:
                entry.unlink(missing_ok=True)
        if not named:
            folder.rmdir()


def _make_folder(directory: Path) -> str:
    """Make the folder; returns a random token for the names of the files of this checkpoint."""
    try:
        (directory / FOLDER).mkdir(exist_ok=True)
        sync_directory(directory)
    except OSError as error:
        raise unwritable(directory / FOLDER, error) from error
    return uuid.uuid4().hex[:8]


def _pieces(large: Mapping[str, NDArray[Any]], number: int, n_shards: int) -> dict[str, NDArray[Any]]:
    """The piece of each array that belongs to a shard."""
    pieces = {}
    for name, array in large.items():
        row = array.reshape(-1)
        pieces[name] = row[len(row) * number // n_shards : len(row) * (number + 1) // n_shards]
    return pieces
