"""Batches of frames as messages of an Orienteer stream, dense or as lists of photons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.errors import OrienteerError
from orienteer.source.patterns import FRAME_MASK, Patterns, SparsePhotons
from orienteer.source.sparse_photons import check_photons
from orienteer.stream.message import Malformed, Message

MOST_EVENTS = 1 << 16
_COLUMN = "column:"
_PHOTONS = ("photons.start", "photons.pixel", "photons.count")


def arrays_of(patterns: Patterns) -> dict[str, NDArray[Any]]:
    """The arrays of a message that carries these frames."""
    arrays = small_arrays_of(patterns.event_id, patterns.columns)
    if isinstance(patterns.frames, SparsePhotons):
        lists = (patterns.frames.start, patterns.frames.pixel, patterns.frames.count)
        arrays.update(zip(_PHOTONS, lists, strict=True))
    else:
        arrays["frames"] = patterns.frames
    return arrays


def small_arrays_of(
    event_id: NDArray[np.uint64], columns: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """The arrays of a message that carries only ids and small data."""
    return {"event_id": event_id, **{_COLUMN + name: column for name, column in columns.items()}}


def has_frames(message: Message) -> bool:
    """Whether frames came with the small data."""
    return "frames" in message.arrays or _PHOTONS[0] in message.arrays


def small_data_of(message: Message) -> tuple[NDArray[np.uint64], dict[str, NDArray[Any]]]:
    """Ids (N,) and columns (N, ...) of a message, checked."""
    event_id = message.arrays.get("event_id")
    if event_id is None or event_id.dtype != np.uint64 or event_id.ndim != 1:
        raise Malformed("a batch has no event ids.")
    if len(event_id) > MOST_EVENTS:
        raise Malformed(f"a batch has {len(event_id)} events; at most {MOST_EVENTS} are allowed.")
    columns = {
        name.removeprefix(_COLUMN): array
        for name, array in message.arrays.items()
        if name.startswith(_COLUMN)
    }
    for name, column in columns.items():
        if not name or column.ndim == 0 or len(column) != len(event_id):
            raise Malformed(f"column '{name}' does not have a row for each event.")
    return event_id, columns


def patterns_of(message: Message, n_pixels: int) -> Patterns:
    """The frames of a message, checked: lists of photons refer only to pixels that exist."""
    event_id, columns = small_data_of(message)
    if "frames" in message.arrays:
        frames: Any = message.arrays["frames"]
        if frames.dtype.kind not in "iuf" or frames.shape != (len(event_id), n_pixels):
            raise Malformed(
                f"frames are {frames.dtype} of shape {frames.shape}; expected {(len(event_id), n_pixels)}."
            )
    else:
        frames = _photons(message, len(event_id), n_pixels)
    mask = columns.get(FRAME_MASK)
    if mask is not None and (mask.dtype != np.uint8 or mask.shape != (len(event_id), n_pixels)):
        raise Malformed("masks of frames do not have their shape.")
    return Patterns(frames, event_id, columns)


def _photons(message: Message, n_events: int, n_pixels: int) -> SparsePhotons:
    lists = [message.arrays.get(name) for name in _PHOTONS]
    if any(one is None for one in lists):
        raise Malformed("a batch has neither frames nor lists of photons.")
    try:
        start, pixel, count = lists
        photons = SparsePhotons(start, pixel, count, n_pixels)
    except OrienteerError as error:
        raise Malformed(error.message) from error
    if len(photons) != n_events:
        raise Malformed(f"a batch has {len(photons)} lists of photons for {n_events} events.")
    if (bad := check_photons(photons)) is not None:
        raise Malformed(f"list {bad[0]} of a batch {bad[1]}.")
    return photons
