"""Replay: the frames of any source as if recorded now, from any position and at a chosen rate."""

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
from orienteer.source.patterns import Patterns, concatenate
from orienteer.stream.batch_message import MOST_EVENTS

_LARGEST_BATCH_BYTES = 32 * 2**20
_LOOP_BYTES = 512 * 2**20
_BLOCK_EVENTS, _BLOCKS_KEPT = 256, 4


@dataclass(frozen=True)
class Batch:
    """A range of frames: ``first`` counts on over all laps, ``is_end`` says that nothing will follow."""

    first: int
    last: int
    is_end: bool


class Replay:
    """Serves the frames of a source by their number, which is all that a position holds.

    source : anything that ``orienteer.open`` returns.
    rate_hz : events that become due per second, from the first request on; None: all are due at once.
        Events that are not requested in time stay due: a replay loses nothing.
    loop : begin again after the last frame; the ids of lap n are those of the file plus n times (largest id -
        smallest id + 1).  If all frames take at most half a GiB, they are kept in memory.
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
            raise OrienteerError(
                f"a rate of {rate_hz} events per second was asked for; it must be above 0.",
                "Leave it out to send events as fast as they are requested.",
            )
        if loop and follow:
            raise OrienteerError("a file that grows cannot be looped.", "Leave out one of the two.")
        self.source, self.rate_hz, self.loop, self.follow, self.dense = source, rate_hz, loop, follow, dense
        if source.n_frames is None:
            raise OrienteerError("a source without an end cannot be replayed.", "Write it to a file first.")
        if loop and not len(source):
            raise OrienteerError(
                "there is no frame to loop over.", "Give a file with frames, or leave out the loop."
            )
        # Only the span of the ids, not the largest: the ids of a second lap of time stamps would pass 2^64.
        self.lap_stride = 1 + int(np.ptp(source.event_ids())) if loop else 0
        self._began: tuple[float, int] | None = None
        # Only this thread reads the file: it reads the next block while this one is sent.
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="replay")
        self._step = min(_BLOCK_EVENTS, self.most_events)
        self._blocks: dict[tuple[int, int], Future[Patterns]] = {}
        # A loop that fits in memory is read once.
        is_small = loop and 4 * len(source) * source.n_pixels <= _LOOP_BYTES
        self._most_blocks = max(_BLOCKS_KEPT, 1 + len(source) // self._step if is_small else 0)

    @property
    def most_events(self) -> int:
        """Events that a batch may have: as many dense frames as fit in 32 MiB."""
        return max(1, min(MOST_EVENTS, _LARGEST_BATCH_BYTES // (4 * self.source.n_pixels)))

    def batch(self, first: int, most: int, now_s: float | None = None) -> Batch:
        """The frames from ``first`` on that are due now, at most ``most`` of them."""
        now_s = time.monotonic() if now_s is None else now_s
        if self._began is None:
            self._began = (now_s, first)
        n_frames = len(self.source)
        if self.follow and first >= n_frames:
            n_frames = self._reader.submit(self.source.refresh).result()
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
        """The frames of a batch; those after it are read ahead."""
        lap, row = self._lap(batch.first)
        last = row + batch.last - batch.first
        parts = [
            self._block(k).result()[max(row - k * self._step, 0) : last - k * self._step]
            for k in range(row // self._step, -(-last // self._step))
        ]
        self._block(-(-last // self._step))
        found = concatenate(parts) if parts else self.source.read(slice(0, 0))
        return found.with_event_ids(self._named(found.event_id, lap))

    def chosen(self, first: int, rows: NDArray[np.int64]) -> Patterns:
        """The frames ``first + rows``, in this order."""
        return self._reader.submit(self._chosen, first + rows).result()

    def close(self) -> None:
        """Stop reading."""
        self._reader.shutdown(wait=True, cancel_futures=True)

    def _lap(self, first: int) -> tuple[int, int]:
        """The number of the lap, and the number of the frame in the source."""
        return divmod(first, len(self.source)) if self.loop else (0, first)

    def _small_data(self, first: int, last: int) -> tuple[NDArray[np.uint64], Mapping[str, NDArray[Any]]]:
        lap, row = self._lap(first)
        rows = slice(row, row + last - first)
        return self._named(self.source.event_ids(rows), lap), self.source.read_columns(frames=rows)

    def _block(self, k: int) -> Future[Patterns]:
        """Block k of frames, read once although the batches of requests may end inside it."""
        n_frames = len(self.source)
        first = k * self._step
        if self.loop and first >= n_frames:
            first = 0
        rows = (min(first, n_frames), min(first + self._step, n_frames))
        if rows in self._blocks and self._blocks[rows].done() and self._blocks[rows].exception() is not None:
            del self._blocks[rows]  # a file that is being written may be readable the next time
        if rows not in self._blocks:
            while len(self._blocks) >= self._most_blocks:
                del self._blocks[next(iter(self._blocks))]
            self._blocks[rows] = self._reader.submit(lambda: self._as_sent(self.source.read(slice(*rows))))
        return self._blocks[rows]

    def _chosen(self, frames: NDArray[np.int64]) -> Patterns:
        n_frames = len(self.source)
        if len(frames) and (frames.min() < 0 or (not self.loop and frames.max() >= n_frames)):
            raise OrienteerError(f"frames up to {frames.max()} were asked for; there are {n_frames}.")
        laps, rows = np.divmod(frames, n_frames) if self.loop else (np.zeros_like(frames), frames)
        found = self._as_sent(self.source.read(rows))
        return found.with_event_ids(self._named(found.event_id, laps))

    def _named(self, event_id: NDArray[np.uint64], lap: int | NDArray[np.int64]) -> NDArray[np.uint64]:
        return event_id + np.asarray(lap, np.uint64) * np.uint64(self.lap_stride)

    def _as_sent(self, patterns: Patterns) -> Patterns:
        if not self.dense:
            return patterns
        frames = patterns.dense()
        if frames.dtype.kind in "iu" and frames.dtype.itemsize > 2 and int(frames.max(initial=0)) < 2**16:
            frames = frames.astype(np.uint16)
        return Patterns(frames, patterns.event_id, patterns.columns)
