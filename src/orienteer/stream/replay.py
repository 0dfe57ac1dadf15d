"""Replay: the frames of any source as if a detector gave them now, from any position and at a chosen rate."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.errors import OrienteerError
from orienteer.source.base import Source
from orienteer.source.patterns import Patterns
from orienteer.stream.batch_message import MOST_EVENTS

_LARGEST_BATCH_BYTES = 32 * 2**20


@dataclass(frozen=True)
class Batch:
    """A range of frames: ``first`` counts on over all laps, ``is_end`` tells that nothing will follow."""

    first: int
    last: int
    is_end: bool


class Replay:
    """Serves the frames of a source by their number, which is all that a position holds.

    source : anything that ``orienteer.open`` gives.
    rate_hz : events that become due per second, from the first one asked for; None: all are due at once.
        What nobody asks for in time stays due: a replay loses nothing.
    loop : begin again behind the last frame; the ids of lap n are those of the first plus n times the
        largest of them plus one.
    follow : wait for more at the end of a file that grows.
    dense : send frames as counts of every pixel (uint16 where they fit), as a detector would.
    """

    def __init__(
        self,
        source: Source,
        rate_hz: float | None = None,
        *,
        loop: bool = False,
        follow: bool = False,
        dense: bool = False,
    ) -> None:
        if rate_hz is not None and not rate_hz > 0:
            raise OrienteerError(f"a rate of {rate_hz} events per second was asked for; it must be above 0.")
        if loop and follow:
            raise OrienteerError("a file that grows cannot be looped.", "Leave out one of the two.")
        self.source, self.rate_hz, self.loop, self.follow, self.dense = source, rate_hz, loop, follow, dense
        if source.n_frames is None:
            raise OrienteerError("a source without an end cannot be replayed.")
        if loop and not len(source):
            raise OrienteerError("there is no frame to loop over.")
        self.lap_stride = int(source.event_ids().max()) + 1 if loop else 0
        self._began: tuple[float, int] | None = None
        # One thread alone touches the file: it reads the next batch while this one is sent.
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="replay")
        self._ahead: tuple[tuple[int, int], Future[Patterns]] | None = None

    @property
    def most_events(self) -> int:
        """Events that a batch may have: as many as fit in 32 MiB of dense frames."""
        return max(1, min(MOST_EVENTS, _LARGEST_BATCH_BYTES // (4 * self.source.n_pixels)))

    def batch(self, first: int, most: int, now_s: float | None = None) -> Batch:
        """The frames from ``first`` on that are due now, at most so many of them."""
        now_s = time.monotonic() if now_s is None else now_s
        if self._began is None:
            self._began = (now_s, first)
        n_frames = self._reader.submit(self._length, first).result()
        last = first + max(1, min(most, self.most_events))
        if self.rate_hz is not None:
            last = min(last, self._began[1] + int((now_s - self._began[0]) * self.rate_hz))
        if self.loop:  # a batch ends with its lap
            return Batch(first, max(first, min(last, (first // n_frames + 1) * n_frames)), False)
        return Batch(first, max(first, min(last, n_frames)), first >= n_frames and not self.follow)

    def small_data(self, batch: Batch) -> tuple[NDArray[np.uint64], Mapping[str, NDArray[Any]]]:
        """Ids and columns of a batch; no frame is read."""
        return self._reader.submit(self._small_data, batch.first, batch.last).result()

    def patterns(self, batch: Batch) -> Patterns:
        """The frames of a batch; those behind it are read ahead."""
        wanted = (batch.first, batch.last)
        if self._ahead is not None and self._ahead[0] == wanted:
            found = self._ahead[1]
        else:
            found = self._reader.submit(self._read, *wanted)
        self._ahead = None
        n = batch.last - batch.first
        if n and not self.follow:
            behind = self.batch(batch.last, n, now_s=float("inf") if self.rate_hz is None else None)
            if behind.last - behind.first == n:
                wanted = (behind.first, behind.last)
                self._ahead = (wanted, self._reader.submit(self._read, *wanted))
        return found.result()

    def chosen(self, first: int, rows: NDArray[np.int64]) -> Patterns:
        """The frames ``first + rows``, in this order."""
        return self._reader.submit(self._chosen, first + rows).result()

    def close(self) -> None:
        """Stop reading."""
        self._reader.shutdown(wait=True, cancel_futures=True)

    def _length(self, first: int) -> int:
        if self.follow and first >= len(self.source):
            return self.source.refresh()
        return len(self.source)

    def _lap(self, first: int) -> tuple[int, int]:
        """The number of the lap, and of the frame in the source."""
        return divmod(first, len(self.source)) if self.loop else (0, first)

    def _small_data(self, first: int, last: int) -> tuple[NDArray[np.uint64], Mapping[str, NDArray[Any]]]:
        lap, row = self._lap(first)
        rows = slice(row, row + last - first)
        return self._named(self.source.event_ids(rows), lap), self.source.read_columns(frames=rows)

    def _read(self, first: int, last: int) -> Patterns:
        lap, row = self._lap(first)
        return self._as_sent(self.source.read(slice(row, row + last - first)), lap)

    def _chosen(self, frames: NDArray[np.int64]) -> Patterns:
        n_frames = len(self.source)
        if len(frames) and (frames.min() < 0 or (not self.loop and frames.max() >= n_frames)):
            raise OrienteerError(f"frames up to {frames.max()} were asked for; there are {n_frames}.")
        laps, rows = np.divmod(frames, n_frames) if self.loop else (np.zeros_like(frames), frames)
        return self._as_sent(self.source.read(rows), laps)

    def _named(self, event_id: NDArray[np.uint64], lap: int | NDArray[np.int64]) -> NDArray[np.uint64]:
        return event_id + np.asarray(lap, np.uint64) * np.uint64(self.lap_stride)

    def _as_sent(self, patterns: Patterns, lap: int | NDArray[np.int64]) -> Patterns:
        frames = patterns.frames
        if self.dense:
            frames = patterns.dense()
            if frames.dtype.kind in "iu" and frames.dtype.itemsize > 2 and int(frames.max(initial=0)) < 2**16:
                frames = frames.astype(np.uint16)
        return Patterns(frames, self._named(patterns.event_id, lap), patterns.columns)
