"""The frames of a stage in batches, sorted into groups of similar fluence.

They are kept as near to the device as the plan allows: in its memory; in host memory, from which each batch
is copied while the one before is worked on; or on disk, from which each is read while the one before is
worked on.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import DeviceName
from orienteer.compute.host_block import HostBlock, copied_ahead
from orienteer.compute.prefetch import Prefetched
from orienteer.likelihood.fluence import fluence_groups
from orienteer.likelihood.frames import FrameBatch, Layout
from orienteer.likelihood.product import Product, product_of
from orienteer.reconstruction.frames.batch import Batch, Group
from orienteer.reconstruction.frames.frame_store import FrameStore
from orienteer.reconstruction.plan import Plan
from orienteer.source.patterns import Patterns

# Frames whose fluences differ by less than this factor share their slices.  Each is still scored at its own
# fluence, to first order.
_FLUENCE_RATIO = 2.0
# Bytes of a lit pixel in a list; a pixel of an array takes at least one.
_LISTED_BYTES = 8


@dataclass(frozen=True, eq=False)
class Chunk:
    """The frames of one batch: ``places`` (D,) in the data set, and the ``columns`` of each group."""

    places: NDArray[np.int64]
    columns: tuple[slice, ...]

    def __len__(self) -> int:
        return len(self.places)


class KeptFrames(Protocol):
    """Frames in batches, wherever they are kept; a batch is valid until the next one is requested."""

    def __len__(self) -> int: ...

    def __iter__(self) -> "Iterator[PreparedFrames]": ...


@dataclass(frozen=True, eq=False)
class StageFrames:
    """The frames of a store over the pixels of one stage.

    pixels : (P,) the pixel list: places in the table of pixels, the ``n_scored`` scored ones first.
    grouping_fluence : (N,) float64, by which frames are sorted into groups.
    fluence_ratio : largest ratio of fluences in a group.
    learns : (N,) bool, frames whose mean fluence is that of their group; sentinels must not influence it.
        None: all of them.
    """

    store: FrameStore
    pixels: NDArray[np.int64]
    n_scored: int
    device: DeviceName
    plan: Plan
    grouping_fluence: NDArray[np.float64]
    fluence_ratio: float = _FLUENCE_RATIO
    learns: NDArray[np.bool_] | None = None

    @cached_property
    def is_grouped(self) -> bool:
        """Whether frames are sorted into groups by fluence."""
        return bool(np.ptp(self.grouping_fluence) > 0)

    @cached_property
    def group_of(self) -> NDArray[np.int64]:
        """(N,) the group of every frame; it does not depend on the batches, so that these change no score."""
        number = np.zeros(len(self.grouping_fluence), dtype=np.int64)
        if self.is_grouped:
            groups = fluence_groups(self.grouping_fluence, self.fluence_ratio)
            number[groups.order] = np.repeat(np.arange(len(groups.bounds) - 1), np.diff(groups.bounds))
        return number

    def keep(self, frames: NDArray[np.int64]) -> KeptFrames:
        """The frames (D,) in batches of the planned size, kept in the planned place."""
        # Frames on disk are not sorted, because they are read fastest in their own order.
        if self.is_grouped and self.store.is_in_memory:
            frames = frames[np.argsort(self.grouping_fluence[frames], kind="stable")]
        chunks = [self.chunk(part) for part in self.store.chunks(frames, self.plan.batch_frames)]
        if not self.store.is_in_memory:
            return FramesOnDisk(self, chunks)
        if not self.plan.frames_on_device:
            return FramesInHostMemory(self, chunks)
        return [self.prepare(chunk) for chunk in chunks]

    def chunk(self, frames: NDArray[np.int64]) -> Chunk:
        """The frames (D,) of one batch, sorted into groups."""
        if not self.is_grouped:
            return Chunk(frames, (slice(0, len(frames)),))
        frames = frames[np.argsort(self.grouping_fluence[frames], kind="stable")]
        edges = np.flatnonzero(np.diff(self.group_of[frames])) + 1
        bounds = pairwise([0, *edges.tolist(), len(frames)])
        return Chunk(frames, tuple(slice(*ends) for ends in bounds if ends[1] > ends[0]))

    def prepare(self, chunk: Chunk, patterns: Patterns | None = None) -> "PreparedFrames":
        """The frames of a chunk on the device.  patterns : the frames, if they were read already."""
        batches = self.frame_batches(chunk, patterns, self.device, self.plan.layout)
        return self.prepared(chunk, batches)

    def prepared(self, chunk: Chunk, batches: Iterable[FrameBatch]) -> "PreparedFrames":
        """The groups of a chunk with their products; batches : one for each group, on the device."""
        return PreparedFrames(
            chunk.places,
            [
                (columns, batch, product_of(batch, self.plan.precision))  # type: ignore[arg-type]
                for columns, batch in zip(chunk.columns, batches, strict=True)
            ],
            self.group_of,
            self.learns,
        )

    def frame_batches(
        self, chunk: Chunk, patterns: Patterns | None, device: DeviceName, layout: Layout
    ) -> list[FrameBatch]:
        """One batch of frames for every group of the chunk."""
        patterns = self.store.patterns(chunk.places) if patterns is None else patterns
        return [
            self.store.prepare(patterns[columns], self.pixels, self.n_scored, device, layout)
            for columns in chunk.columns
        ]


class PreparedFrames:
    """Frames on the device, which make a batch together with the present fluences.

    group_of : (N,) the group of every frame of the data set.
    learns : (N,) bool, frames whose mean fluence is that of their group; None: all of them.
    """

    def __init__(
        self, places: NDArray[np.int64], parts: list[tuple[slice, FrameBatch, Product]],
        group_of: NDArray[np.int64], learns: NDArray[np.bool_] | None = None,
    ) -> None:  # fmt: skip
        self.places, self.parts, self.group_of, self.learns = places, parts, group_of, learns

    def batch(
        self, fluence: NDArray[np.float64], xp: Any, weight: NDArray[np.float64] | None = None,
        known: dict[int, tuple[float, bool]] | None = None,
    ) -> Batch:  # fmt: skip
        """The batch at these fluences (N,), and with these weights (N,) in the merge.

        known : results for groups at these fluences, so that other batches of a group need not repeat them.
        """
        own, known = fluence[self.places], {} if known is None else known
        groups = []
        for columns, frames, product in self.parts:
            number = int(self.group_of[self.places[columns.start]])
            if number not in known:
                known[number] = self._mean_of_group(number, fluence)
            groups.append(Group(columns, frames, product, *known[number]))
        weights = None if weight is None else xp.asarray(weight[self.places].astype(np.float32))
        return Batch(self.places, tuple(groups), xp.asarray(own), weights)

    def _mean_of_group(self, number: int, fluence: NDArray[np.float64]) -> tuple[float, bool]:
        """The mean fluence of a group, and whether all of its frames have exactly that.

        At the mean fluence, the share of the signal in all photons of the group is right.
        """
        is_alike = self.group_of == number
        learns = is_alike if self.learns is None else is_alike & self.learns
        mean = float(fluence[learns if learns.any() else is_alike].mean())
        return mean, not np.ptp(fluence[is_alike]) > 0


class FramesInHostMemory:
    """Batches that wait in host memory, as small integers or lists; each is copied one turn ahead."""

    def __init__(self, stage: StageFrames, chunks: Sequence[Chunk]) -> None:
        self._stage, self._chunks = stage, chunks
        # Kept and copied with as few bytes as possible, and expanded on the device.
        lists_are_short = stage.store.is_counts and _LISTED_BYTES * stage.store.lit_share < 1
        layout: Layout = "sparse" if lists_are_short else stage.plan.layout
        self._blocks: list[HostBlock] = []
        self._waiting: list[list[FrameBatch]] = []
        for chunk in chunks:
            batches = stage.frame_batches(chunk, None, "cpu", layout)
            block = HostBlock([array for batch in batches for array in batch.arrays], stage.device)
            self._blocks.append(block)
            self._waiting.append(_with_arrays(batches, block.arrays(block.memory)))

    def __len__(self) -> int:
        return len(self._chunks)

    def __iter__(self) -> Iterator[PreparedFrames]:
        copies = copied_ahead(self._blocks, self._stage.device)
        for chunk, waiting, arrays in zip(self._chunks, self._waiting, copies, strict=True):
            batches = _with_arrays(waiting, arrays)
            yield self._stage.prepared(chunk, [batch.in_layout(self._stage.plan.layout) for batch in batches])


class FramesOnDisk:
    """Batches that are read from disk, each while the one before is worked on."""

    def __init__(self, stage: StageFrames, chunks: Sequence[Chunk]) -> None:
        self._stage, self._chunks = stage, chunks

    def __len__(self) -> int:
        return len(self._chunks)

    def __iter__(self) -> Iterator[PreparedFrames]:
        store = self._stage.store
        read: Iterable[Patterns] = (store.patterns(chunk.places) for chunk in self._chunks)
        for chunk, patterns in zip(
            self._chunks, Prefetched(read) if store.reads_ahead else read, strict=True
        ):
            yield self._stage.prepare(chunk, patterns)


@dataclass(frozen=True, eq=False)
class Batches:
    """Kept frames as batches with the present fluences (N,) and weights in the merge (N,).

    The arrays of a batch may be overwritten once the next batch has begun.
    """

    kept: KeptFrames
    fluence: NDArray[np.float64]
    xp: Any
    weight: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.kept)

    def __iter__(self) -> Iterator[Batch]:
        known: dict[int, tuple[float, bool]] = {}
        for prepared in self.kept:
            yield prepared.batch(self.fluence, self.xp, self.weight, known)


def _with_arrays(batches: Sequence[FrameBatch], arrays: Sequence[Any]) -> list[FrameBatch]:
    """The same batches with other copies of their arrays, given one after the other."""
    left = iter(arrays)
    return [batch.with_arrays([next(left) for _ in batch.arrays]) for batch in batches]
