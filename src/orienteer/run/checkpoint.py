"""Checkpoints: the state of a method in files with checksums, put in place as a whole or not at all.

Two are kept, the last and the previous one.  A new one is written under a third name; then the last becomes
the previous, and the new one the last.  So at every instant at least one whole checkpoint is in place.
Layout: arrays lie under ``state/NAME``; ``plain`` holds the other values and the facts of the run as JSON;
the attribute ``checksum`` is the BLAKE2b hash of everything, names, types and shapes included.

Large states of several ranks are divided into shards (``shards.py``), which several ranks write at the same
time.  The checkpoint file is then the first shard; it lists the others with their checksums, and is renamed
into place last, when all of them are on the disk.  Any number of ranks can read them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import is_on_gpu, to_numpy
from orienteer.compute.reading import writing
from orienteer.errors import FileError
from orienteer.run.crew import Crew
from orienteer.run.method import State
from orienteer.run.shards import (
    Division,
    join,
    remove_unnamed,
    save_shards,
    whole_division,
)
from orienteer.run.state_file import (
    read_facts,
    read_state_file,
    sync_directory,
    write_state_file,
)
from orienteer.run.unlike_ranks import compare_states

FORMAT = "orienteer-checkpoint"
# Without shards, and with them.
WHOLE, DIVIDED = 1, 2
LAST, PREVIOUS, NEW = "checkpoint.h5", "checkpoint_previous.h5", "checkpoint_new.h5"
_KINDS = "biufc"


@dataclass(frozen=True)
class Checkpoint:
    """A state, and what else a run needs to continue.

    run_id : the run it belongs to.
    begun_with : sentences on what the run began with, if its method was changed before the first step.
    """

    run_id: str
    iteration: int
    finished: bool
    reason: str
    state: State
    begun_with: tuple[str, ...] = ()


def save_checkpoint(directory: Path, checkpoint: Checkpoint, crew: Crew | None = None) -> str:
    """Put a new checkpoint in place; a failure leaves the earlier ones as they are.

    crew : all of its ranks call this, each with the same state; an error of one is raised on all.
    Returns a sentence about ranks whose numbers differ from those that were saved, or "".
    """
    crew = crew or Crew.alone()
    arrays, values = _sorted_out(checkpoint.state)
    facts = _facts(checkpoint)
    division, note = whole_division(arrays), ""
    if not crew.is_alone:
        note = compare_states(crew, arrays, values)
        if not note:  # otherwise the leader saves everything, so that no array mixes numbers of unlike ranks
            division = save_shards(directory, facts, arrays, crew)

    def put_in_place() -> None:
        last, new = directory / LAST, directory / NEW
        try:
            _write(new, facts, values, division)
            with writing(last):
                if last.exists():
                    os.replace(last, directory / PREVIOUS)
                os.replace(new, last)
                sync_directory(directory)
        finally:
            # Also after a failure: a shard that neither checkpoint names is useless, and the shards of a
            # checkpoint that is already in place are named by it.
            sweep_shards(directory)

    crew.by_leader(put_in_place)
    return note


def sweep_shards(directory: Path) -> None:
    """Remove shards that neither checkpoint names: those of older checkpoints and of killed writes."""
    named: set[str] = set()
    for name in (LAST, PREVIOUS):
        if (directory / name).exists():
            try:
                facts = read_facts(directory / name, FORMAT, DIVIDED)
            except FileError:  # a damaged checkpoint: keep its shards, which may be all that is left of it
                return
            named.update(shard["name"] for shard in facts.get("shards", ()))
    remove_unnamed(directory, named)


def load_checkpoint(directory: Path, run_id: str) -> tuple[Checkpoint | None, str]:
    """The last good checkpoint of a run, and a sentence about a later one that is damaged, or "".

    None if there is none yet.  If all that exist are damaged, a FileError is raised.
    """
    damaged: list[FileError] = []
    for name in (LAST, PREVIOUS):
        path = directory / name
        if not path.exists():
            continue
        try:
            checkpoint = read_checkpoint(path)
            if checkpoint.run_id != run_id:
                raise FileError(
                    path,
                    "belongs to another run.",
                    "Put back the checkpoint of this run, or begin anew with --restart.",
                )
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


def load_for_all(directory: Path, run_id: str, crew: Crew) -> tuple[Checkpoint | None, str]:
    """The same on every rank; the leader reads, and sends the arrays to the others one by one."""
    found: list[Checkpoint] = []

    def load() -> tuple[Checkpoint | None, list[str], str]:
        checkpoint, note = load_checkpoint(directory, run_id)
        if checkpoint is None:
            return None, [], note
        found.append(checkpoint)
        return replace(checkpoint, state={}), list(checkpoint.state), note

    checkpoint, names, note = crew.by_leader(load)
    if checkpoint is None:
        return None, note
    state = {name: crew.from_leader(found[0].state[name] if found else None) for name in names}
    return replace(checkpoint, state=state), note


def read_checkpoint(path: Path) -> Checkpoint:
    """The checkpoint in a file and its shards; a FileError if anything differs from what was written."""
    facts, arrays, _ = read_state_file(path, FORMAT, DIVIDED)
    state = {**facts["values"], **join(path.parent, facts, arrays)}
    begun_with = tuple(facts.get("begun_with", ()))
    return Checkpoint(
        facts["run_id"], facts["iteration"], facts["finished"], facts["reason"], state, begun_with
    )


def _write(path: Path, facts: Mapping[str, Any], values: Mapping[str, Any], division: Division) -> None:
    version = DIVIDED if division.shards else WHOLE
    whole = {**facts, "values": values, "arrays": sorted(division.own)}
    if division.shards:
        whole |= {"divided": division.divided, "shards": division.shards}
    write_state_file(path, FORMAT, version, whole, division.own)


def _facts(checkpoint: Checkpoint) -> dict[str, Any]:
    return {
        "run_id": checkpoint.run_id,
        "iteration": int(checkpoint.iteration),
        "finished": bool(checkpoint.finished),
        "reason": checkpoint.reason,
        **({"begun_with": checkpoint.begun_with} if checkpoint.begun_with else {}),
    }


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


def saved_iteration(directory: Path) -> int:
    """The iteration of the last checkpoint that can be read; 0 when there is none."""
    for name in (LAST, PREVIOUS):
        with suppress(FileError):
            if (directory / name).exists():
                return int(read_facts(directory / name, FORMAT, DIVIDED)["iteration"])
    return 0
