"""The beginning of a run: make its folder, or check that the run in it is the one that is asked for."""

from __future__ import annotations

import inspect
import os
import weakref
from collections.abc import Generator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from orienteer.compute.arrays import DeviceName, choose_device
from orienteer.errors import FileError
from orienteer.run.directory import RunDirectory
from orienteer.run.input import (
    describe_input,
    file_differences,
    hash_named_files,
    input_differences,
    refuse_wrong_scale,
)
from orienteer.run.lock import RunLock
from orienteer.run.method import MethodKind, Step
from orienteer.run.settings_file import lasting, settings_differences, settings_tree
from orienteer.settings.section import Section
from orienteer.source.base import Source

# The open loop (``Run.iterate``) over each directory.  In a notebook, that of an interrupted cell lives on.
under_way: weakref.WeakValueDictionary[str, Generator[Step]] = weakref.WeakValueDictionary()


def begin_or_resume(
    directory: RunDirectory,
    kind: MethodKind,
    section: Section,
    source: Source,
    seed: int,
    device: DeviceName,
    restart: bool,
    because: str = "",
    given: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Begin a run, or check the one that is there, and return the content of its ``run.json``.

    A run that was begun with another method, seed, settings or data is refused.

    because : why the method was chosen, if the user has not named it.
    given : the facts of the source that must not change, if they are not those of ``describe_input``.
    """
    facts: dict[str, Any] = {
        "method": kind.name,
        **({"method_because": because} if because else {}),
        "seed": seed,
        "device": device,
        "device_used": choose_device(device),
        "input": dict(given) if given is not None else describe_input(source),
        "files": hash_named_files(section),
    }
    if restart or not directory.is_run:
        _begin(directory, facts, section, source, restart)
    described = directory.describe()
    differences = [
        f"the {name} ({facts[name]} instead of {described[name]})"
        for name in ("method", "seed")
        if facts[name] != described[name]
    ]
    stored: dict[str, Any] = {}
    tree = settings_tree(kind.name, section)
    if facts["method"] == described["method"]:  # settings of different methods cannot be compared
        stored = directory.read_settings(described, kind.settings)
        differences += settings_differences(lasting(stored, section), lasting(tree, section))
    differences += input_differences(described["input"], facts["input"])
    differences += file_differences(described.get("files", {}), facts["files"])
    if differences:
        raise FileError(
            directory.path,
            f"the run there was begun with something else. Different now: {'; '.join(differences)}.",
            "Give what it was begun with to resume it, or another folder for a new run; "
            "--restart (restart=True) begins anew there and keeps nothing.",
        )
    if settings_differences(stored, tree):  # only settings that may change are left
        leave_earlier_loop(directory.path)
        with RunLock(directory.path):
            directory.write_settings(kind.name, section)
    return described


def _begin(
    directory: RunDirectory, facts: dict[str, Any], section: Section, source: Source, restart: bool
) -> None:
    """Begin a run in a folder; a failure leaves nothing of the run behind."""
    refuse_wrong_scale(source)
    is_new = not directory.path.exists()
    directory.make(restart)
    leave_earlier_loop(directory.path)
    try:
        with RunLock(directory.path):
            if restart or not directory.is_run:  # else another process has begun it in the meantime
                directory.clear()
                try:
                    directory.begin(facts, section, source.detector)
                except BaseException:
                    directory.clear()
                    raise
    except BaseException:
        if is_new:
            with suppress(OSError):  # another process has put files there
                directory.path.rmdir()
        raise


def leave_earlier_loop(path: Path) -> None:
    """Close an earlier loop of this process over the same run that was left unfinished, to free its lock."""
    before = under_way.pop(os.path.realpath(path), None)
    if before is not None and inspect.getgeneratorstate(before) != inspect.GEN_RUNNING:
        before.close()
