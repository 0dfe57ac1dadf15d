"""The frames of a run: read once, kept in memory if they fit, and prepared over the pixels of a stage.

With several ranks, each reads a contiguous part of the data.  Once the half of every frame is known, frames
are sent to the ranks that orient them; ranks that share the orientations of the same frames all get them.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import DeviceName, to_numpy
from orienteer.compute.machine import memory_GiB
from orienteer.compute.progress import steps
from orienteer.compute.ranks.comm import complete_rows
from orienteer.compute.ranks.mesh import SERIAL_MESH, Mesh
from orienteer.compute.words import counted
from orienteer.errors import OrienteerError
from orienteer.likelihood.frames import FrameBatch, Layout
from orienteer.reconstruction.frames.count_check import CountCheck
from orienteer.reconstruction.frames.moving import gathered, needed, sent_home
from orienteer.reconstruction.frames.pixels import PixelTable
from orienteer.source.base import Source
from orienteer.source.file_source import FileSource
from orienteer.source.patterns import Patterns, concatenate, first_bad_frame

_READ_BYTES = 128 * 2**20
# Share of the machine's memory that frames may fill; larger sets are read again in every iteration.
_SHARE_OF_MEMORY = 0.4
# Gaps of up to this many frames between two wanted ones are read and dropped, which is faster than two reads.
_GAP = 8


class FrameStore:
    """All frames of a source, and statistics from a single pass over them.

    mesh : the ranks that read them; afterwards all ranks have the statistics of all frames.
    read : the contiguous frames that this rank has read.
    is_here : (N,) bool, frames that this rank holds; until ``share_out``, those that it has read.

    event_id : (N,) uint64.
    photons : (N,) float64 on usable pixels.
    pixel_photons : (U,) float64, sum over the frames at every usable pixel.
    pixel_frames : (U,) float64, number of frames in which the pixel was not forbidden.
    lit_share : average share of usable pixels that are not dark.
    largest : largest count of a pixel.
    largest_square : largest sum of squared counts of a frame.
    count_check : what is doubtful about their counts.
    """

    def __init__(self, source: Source, pixels: PixelTable, mesh: Mesh = SERIAL_MESH) -> None:
        if source.n_frames is None:
            raise OrienteerError(
                "a stream without an end cannot be reconstructed as a whole.",
                "Watch it with: orienteer live --source",
            )
        self.source, self.pixels, self.mesh = source, pixels, mesh
        self.n_frames = int(source.n_frames)
        if self.n_frames < mesh.all.size:
            raise OrienteerError(
                f"{mesh.all.size} ranks cannot share {counted(self.n_frames, 'frame')}.", "Start fewer ranks."
            )
        n = len(pixels)
        self.read = mesh.all.share(self.n_frames)
        self._is_own = np.zeros(self.n_frames, dtype=bool)
        self._is_own[self.read] = True
        self.is_here = self._is_own
        self.event_id = np.zeros(self.n_frames, dtype=np.uint64)
        self.photons = np.zeros(self.n_frames)
        self.pixel_photons, self.pixel_frames = np.zeros(n), np.zeros(n)
        self._lit, self.largest, self.largest_square = 0.0, 0.0, 0.0
        self.is_counts = True
        name = "these data" if source.path is None else str(source.path)
        self.count_check = CountCheck(name, first=self.read.start)
        # Machines differ in memory, but all ranks must decide alike.
        limit = float(mesh.all.min(_SHARE_OF_MEMORY * memory_GiB()[1] * 2**30 / mesh.all.n_local))
        parts: list[Patterns] | None = None
        error: OrienteerError | None = None
        try:
            parts = self._read(limit)
        except OrienteerError as raised:
            error = raised
        mesh.all.agree(error)
        if mesh.all.size > 1:
            self._join()
        if len(np.unique(self.event_id)) < self.n_frames:
            raise OrienteerError(
                "some frames have the same event id, so that their results could not be distinguished.",
                "Convert the data with new ids, or join runs whose ids differ.",
            )
        if not self.photons.sum() > 0:
            raise OrienteerError(
                "there is not one photon on the usable pixels.",
                "Look at data and mask: orienteer inspect DATA.",
            )
        self.count_check.n_empty = int((self.photons == 0).sum())
        self.lit_share = self._lit / (self.n_frames * n)
        self._here = np.flatnonzero(self.is_here)
        self._patterns = self._kept(parts, limit)

    def _read(self, limit: float) -> list[Patterns] | None:
        """Read the frames of this rank for the statistics; returns None if they need more than the limit."""
        pixels, n = self.pixels, len(self.pixels)
        parts: list[Patterns] | None = []
        size = max(1, int(_READ_BYTES // max(4 * self.source.n_pixels, 1)))
        never = np.ones(self.source.n_pixels, dtype=bool)
        never[pixels.index] = False
        first, held = self.read.start, 0
        n_batches = -(-(self.read.stop - first) // size)
        for batch, _ in zip(self._own_batches(size), steps(range(n_batches), "Reading frames"), strict=False):
            frames = slice(first, first + len(batch))
            _refuse_bad(batch, never, first)
            self.count_check.add(batch, pixels.index)
            self.is_counts &= _is_counts(batch)
            whole = FrameBatch.prepare(
                batch, pixels.index, n, "cpu", "sparse" if _is_counts(batch) else "dense"
            )
            self.event_id[frames] = batch.event_id
            self.photons[frames] = whole.photons_total
            self._look(whole)
            first += len(batch)
            held += bytes_of(needed(batch))
            parts = None if parts is None or held > limit else [*parts, needed(batch)]
        return parts

    def _own_batches(self, size: int) -> Iterator[Patterns]:
        if self.mesh.all.size == 1:
            yield from self.source.batches(size)
            return
        for first in range(self.read.start, self.read.stop, size):
            yield self.source.read(slice(first, min(first + size, self.read.stop)))

    def _join(self) -> None:
        """Join the statistics of all ranks."""
        comm = self.mesh.all
        complete_rows(comm, np.arange(self.read.start, self.read.stop), self.event_id, self.photons)
        self.pixel_photons, self.pixel_frames = comm.sum(np.stack([self.pixel_photons, self.pixel_frames]))
        self._lit = comm.sum(self._lit)
        self.largest, self.largest_square = comm.max(np.array([self.largest, self.largest_square])).tolist()
        self.is_counts = all(comm.gather(self.is_counts))
        self.count_check = self.count_check.joined(comm)

    def _kept(self, parts: list[Patterns] | None, limit: float) -> Patterns | None:
        """The frames of this rank, if every rank has memory for those of its whole group; else None."""
        held = np.inf if parts is None else float(sum(bytes_of(part) for part in parts))
        if not self.mesh.all.max(self.mesh.poses.sum(held)) <= limit:
            return None
        assert parts is not None
        own = concatenate(parts)
        parts.clear()  # frees memory for the frames of other ranks
        return own

    def share_out(self, half: NDArray[np.int64]) -> None:
        """Give every rank the frames that its group will orient.  All ranks call this together, once.

        half : (N,) the half set of every frame.
        """
        mesh, home = self.mesh, self.mesh.homes(half)
        if self._patterns is not None:
            if mesh.is_apart:
                self._patterns = sent_home(mesh.all, self._patterns, home[self.read])
            self._patterns = gathered(mesh.poses, self._patterns)
        self._is_own, self.is_here = mesh.is_own(home), mesh.is_in_group(home)
        self._here = np.flatnonzero(self.is_here)

    @property
    def has_missing(self) -> bool:
        """Whether single frames forbid pixels."""
        return bool((self.pixel_frames < self.n_frames).any())

    @property
    def is_in_memory(self) -> bool:
        """Whether the frames are kept in memory; otherwise they are read again in every iteration."""
        return self._patterns is not None

    @property
    def nbytes(self) -> int:
        """Memory of the frames as they were read, in bytes; 0 if they are not kept."""
        return 0 if self._patterns is None else bytes_of(self._patterns)

    @property
    def reads_ahead(self) -> bool:
        """Whether a second thread may read ahead: from files, but not if parallel kernels make the frames."""
        return isinstance(self.source, FileSource)

    def batch(
        self,
        frames: NDArray[np.int64],
        places: NDArray[np.int64],
        n_scored: int,
        device: DeviceName,
        layout: Layout,
    ) -> FrameBatch:
        """The chosen frames over the chosen pixels, ready on the device.

        frames : (D,) places in the data set; places : (P,) places in the table of pixels, scored ones first.
        """
        return self.prepare(self.patterns(frames), places, n_scored, device, layout)

    def patterns(self, frames: NDArray[np.int64]) -> Patterns:
        """The chosen frames (D,), which must be here, from memory or from disk."""
        if self._patterns is not None:
            return self._patterns[np.searchsorted(self._here, frames)]
        ordered, back = np.unique(frames, return_inverse=True)
        most = max(1, _READ_BYTES // (4 * self.source.n_pixels))
        # A half is about every second frame: reading all is faster than leaving out the others.
        apart = (np.diff(ordered) > _GAP) | (np.diff(ordered // most) > 0)
        runs = np.split(ordered, np.flatnonzero(apart) + 1)
        parts = [self.source.read(slice(int(run[0]), int(run[-1]) + 1))[run - run[0]] for run in runs]
        return concatenate(parts)[back]

    def patterns_of_all(self, frames: NDArray[np.int64]) -> Patterns:
        """The chosen frames (D,), on whatever rank they are; all ranks must ask for the same."""
        if self._patterns is None or self.mesh.all.size == 1:
            return self.patterns(frames)
        own = self.own_of(np.unique(frames))
        places = self.mesh.all.rows(own)
        order = np.argsort(places)
        found = order[np.searchsorted(places[order], frames)]
        return gathered(self.mesh.all, self.patterns(own))[found]

    def own_of(self, frames: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of the frames (D,) that belong to this rank; every frame belongs to exactly one."""
        return np.asarray(frames[self._is_own[frames]])

    def prepare(
        self, patterns: Patterns, places: NDArray[np.int64], n_scored: int, device: DeviceName, layout: Layout
    ) -> FrameBatch:
        """Frames of this store over the chosen pixels, ready on the device."""
        return FrameBatch.prepare(patterns, self.pixels.index[places], n_scored, device, layout)

    def chunks(self, frames: NDArray[np.int64], size: int) -> Iterator[NDArray[np.int64]]:
        """The frames in parts of at most ``size``, all of nearly the same size."""
        n_parts = max(1, -(-len(frames) // size))
        yield from (part for part in np.array_split(frames, n_parts) if len(part))

    def _look(self, whole: FrameBatch) -> None:
        n = len(self.pixels)
        if whole.photons is not None:
            pixel, count = to_numpy(whole.photons.pixel), to_numpy(whole.photons.count)
            self.pixel_photons += np.bincount(pixel, weights=count, minlength=n)
            n_lit, largest = len(pixel), float(count.max(initial=0))
        else:
            dense = to_numpy(whole.dense)
            self.pixel_photons += dense.sum(axis=0, dtype=np.float64)
            n_lit, largest = int(np.count_nonzero(dense)), float(dense.max(initial=0))
        self._lit += n_lit
        self.largest = max(self.largest, largest)
        self.largest_square = max(self.largest_square, float(whole.squares.max(initial=0)))
        self.pixel_frames += len(whole)
        if whole.missing is not None:
            self.pixel_frames -= np.bincount(to_numpy(whole.missing.pixel), minlength=n)


def _is_counts(patterns: Patterns) -> bool:
    return patterns.is_sparse or patterns.frames.dtype.kind in "iu"


def _refuse_bad(batch: Patterns, never: NDArray[np.bool_], first: int) -> None:
    bad = first_bad_frame(batch, never)
    if bad is not None:
        raise OrienteerError(
            f"frame {first + bad[0]} {bad[1]}.",
            "Mask the pixel, or leave the frame out: orienteer convert --help.",
        )


def bytes_of(patterns: Patterns) -> int:
    """Memory of frames and columns, in bytes."""
    frames: Any = patterns.frames
    arrays = (frames.start, frames.pixel, frames.count) if patterns.is_sparse else (frames,)
    return int(sum(a.nbytes for a in arrays) + sum(c.nbytes for c in patterns.columns.values()))
