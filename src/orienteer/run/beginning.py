"""The beginning of a run: a folder is made one, or the run that is there is found to be the one asked for."""

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

# The iteration that is under way in each directory.  In a notebook, the one of an interrupted cell lives on.
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
    """What ``run.json`` says of the run that is there now; one begun with something else is refused.

    because : why the method was chosen, where nobody has named it.
    given : the facts of a source that must not change, where they are other ones than ``describe_input`` has.
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
    if facts["method"] == described["method"]:  # the settings of another method are all other ones
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
    if settings_differences(stored, tree):  # in what may change
        leave_earlier_loop(directory.path)
        with RunLock(directory.path):
            directory.write_settings(kind.name, section)
    return described


def _begin(
    directory: RunDirectory, facts: dict[str, Any], section: Section, source: Source, restart: bool
) -> None:
    """Begin a run in a folder; a failure leaves nothing of it behind."""
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
            with suppress(OSError):  # another process has put something there
                directory.path.rmdir()
        raise


def leave_earlier_loop(path: Path) -> None:
    """Let go of a run that an earlier loop of this process has not ended, but does not work on either."""
    before = under_way.pop(os.path.realpath(path), None)
    if before is not None and inspect.getgeneratorstate(before) != inspect.GEN_RUNNING:
        before.close()
