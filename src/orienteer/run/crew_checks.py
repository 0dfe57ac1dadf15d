"""Checks that ranks can work together: the same program, settings, data and device, and enough frames."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import orienteer
from orienteer.compute.arrays import DeviceName, choose_device
from orienteer.compute.words import counted
from orienteer.errors import FileError, OrienteerError
from orienteer.run.crew import Crew
from orienteer.settings.section import Section
from orienteer.source.base import Source

_SAME_COMMAND = "Start all ranks with the same command."


def check_crew(crew: Crew) -> None:
    """Refuse ranks that run different versions; nothing else would notice that they compute differently."""
    if crew.is_alone:
        return
    own = {
        "Orienteer": orienteer.__version__,
        "Python": platform.python_version(),
        "NumPy": np.__version__,
    }
    _compare(crew, own, "Give all nodes the same environment.")


def check_asked(crew: Crew, **asked: Any) -> None:
    """Refuse ranks with different arguments, which would end up waiting for each other for ever.

    asked : the arguments of this rank by name; a path is made absolute on this machine.
    """
    if crew.is_alone:
        return
    own = {name: os.path.abspath(it) if isinstance(it, Path) else it for name, it in asked.items()}
    _compare(crew, own, _SAME_COMMAND)


def check_settings(crew: Crew, section: Callable[[], Section]) -> None:
    """Refuse ranks with different settings: those of the leader would be used without any message.

    section : returns the settings that this rank was given.
    """
    if crew.is_alone:
        return
    _compare(crew, crew.side_by_side(lambda: section().model_dump()), _SAME_COMMAND)


def check_source(crew: Crew, source: Source, device: DeviceName) -> None:
    """Refuse data or devices that differ between ranks, and fewer frames than ranks.

    Only sizes and names are compared, which costs nothing; one rank hashes the content of the data.
    """
    chosen = crew.side_by_side(lambda: choose_device(device))
    if crew.is_alone:
        return
    own = crew.side_by_side(lambda: _sizes(source))
    _compare(crew, own, "All ranks must see the same data: is the folder shared by all nodes?")
    _compare(crew, {"device": chosen}, "Give --device cpu for all, or leave out nodes that have no GPU.")
    if source.n_frames is not None and source.n_frames < crew.size:
        raise OrienteerError(
            f"there are {counted(crew.size, 'rank')}, but only {counted(source.n_frames, 'frame')}.",
            f"Start {counted(max(1, source.n_frames), 'rank')} at most.",
        )


def _sizes(source: Source) -> dict[str, Any]:
    return {
        # The folder may differ from node to node, but not the name.
        "data": None if source.path is None else Path(source.path).name,
        "frames": source.n_frames,
        "frames of shape": tuple(source.frame_shape),
        "data of bytes": None if source.path is None else _n_bytes(source.path),
        "detector pixels": None if source.detector is None else source.detector.n_pixels,
    }


def _n_bytes(path: str | os.PathLike[str]) -> int:
    try:
        return os.path.getsize(path)
    except OSError as error:
        raise FileError(
            path, f"cannot be read: {error.strerror}.", "Check the path and its permissions on every node."
        ) from error


def _compare(crew: Crew, own: dict[str, Any], hint: str) -> None:
    first, *others = crew.everyone(own)
    for rank, other in enumerate(others, start=1):
        for name, value in first.items():
            if other[name] != value:
                raise OrienteerError(
                    f"{crew.name(rank)} has {name} {other[name]}, and {crew.name(0)} has {name} {value}.",
                    hint,
                )
