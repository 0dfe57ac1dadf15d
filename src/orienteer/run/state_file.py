"""One file of a checkpoint: arrays under ``state/NAME``, facts as JSON in ``plain``, a checksum of all."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.reading import COPY_AGAIN, refuse_newer
from orienteer.errors import FileError

_KINDS = "biufc"


def write_state_file(
    path: Path, form: str, version: int, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> str:
    """Write the file, whole or not at all; returns its checksum.

    facts : values that JSON can hold; ``arrays`` in it lists the names of the arrays.
    """
    from orienteer.compute.hdf5_writing import new_hdf5

    text = json.dumps(facts, sort_keys=True).encode("ascii")
    checksum = checksum_of(text, arrays)
    with new_hdf5(path, libver="latest") as file:
        file.attrs["format"] = np.bytes_(form)
        file.attrs["version"] = version
        file.attrs["checksum"] = np.bytes_(checksum)
        file.create_dataset("plain", data=np.frombuffer(text, np.uint8))
        for name, array in arrays.items():
            file.create_dataset(f"state/{name}", data=array)
    return checksum


def sync_directory(directory: Path) -> None:
    """Force new names in a folder to the disk, so that they survive a power failure."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_state_file(
    path: Path, form: str, newest: int
) -> tuple[dict[str, Any], dict[str, NDArray[Any]], str]:
    """Facts, arrays and checksum; a FileError if the file differs from what was written.

    newest : the newest version of the layout that can be read.
    """
    from orienteer.compute.hdf5_reading import get_dataset, open_hdf5, read_array, read_text

    with open_hdf5(path, "checkpoint") as file:
        text = _read_plain(path, file, form, newest)
        facts = json.loads(text)
        arrays = {name: read_array(get_dataset(file, f"state/{name}", _KINDS)) for name in facts["arrays"]}
        checksum = read_text(file, "checksum")
        if checksum_of(text, arrays) != checksum:
            raise FileError(path, "has a wrong checksum.", COPY_AGAIN)
        return facts, arrays, checksum


def read_facts(path: Path, form: str, newest: int) -> dict[str, Any]:
    """The facts alone, without checking the checksum: for uses where an error does no harm."""
    from orienteer.compute.hdf5_reading import open_hdf5

    with open_hdf5(path, "checkpoint") as file:
        facts = json.loads(_read_plain(path, file, form, newest))
        if not isinstance(facts, dict):
            raise FileError(path, "is damaged.")
        return facts


def _read_plain(path: Path, file: Any, form: str, newest: int) -> bytes:
    from orienteer.compute.hdf5_reading import get_dataset, read_array, read_numbers, read_text

    if read_text(file, "format") != form:
        raise FileError(path, "is not a checkpoint of Orienteer.")
    refuse_newer(path, int(read_numbers(file, "version", "iu")), newest)
    return bytes(read_array(get_dataset(file, "plain", "u", (None,))).tobytes())


def checksum_of(text: bytes, arrays: Mapping[str, NDArray[Any]]) -> str:
    """The BLAKE2b hash of a text and of all arrays with their names, types and shapes."""
    checksum = hashlib.blake2b(text, digest_size=32)
    for name in sorted(arrays):
        array = np.asarray(arrays[name], order="C")
        checksum.update(f"{name} {array.dtype.str} {array.shape}".encode())
        checksum.update(array.reshape(-1).view(np.uint8).data if array.size else b"")
    return checksum.hexdigest()
