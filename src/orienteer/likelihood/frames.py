"""Frames over the pixel list of a reconstruction: what products and likelihoods read."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from orienteer.compute.arrays import (
    Array,
    DeviceName,
    array_namespace,
    choose_device,
    is_on_gpu,
    to_device,
    to_numpy,
)
from orienteer.errors import OrienteerError
from orienteer.likelihood.reading_frames import (
    Layout,
    check_pixels,
    forbidden_pixels,
    move_photons,
    read_dense,
    read_host,
    read_lists,
    spread_photons,
)
from orienteer.source.patterns import Patterns, SparsePhotons
from orienteer.source.sparse_photons import photons_from_dense

__all__ = ["FrameBatch", "Layout", "scored_stop"]


@dataclass(frozen=True, eq=False, repr=False)
class FrameBatch:
    """D frames over a list of P pixels: the first ``n_scored`` decide orientations, all P are merged.

    Exactly one of ``dense`` and ``photons`` holds the counts.  All arrays live on one device.

    dense : (D, P) uint8, uint16, float16 or float32, or None.
    photons : lists of lit pixels, as ascending places in the pixel list (scored ones come first), or None.
    missing : lists of the pixels that each frame forbids, count 1 each; None if no frame forbids any.
        ``dense`` and ``photons`` hold no photons there.
    n_pixels, n_scored : P and the number of scored pixels.
    scored_photons : (D,) float64, sum over the scored pixels.
    photons_total : (D,) float64, sum over all P pixels.
    squares : (D,) float64, sum of squared counts over the scored pixels.
    """

    dense: Array | None
    photons: SparsePhotons | None
    missing: SparsePhotons | None
    n_pixels: int
    n_scored: int
    scored_photons: Array
    photons_total: Array
    squares: Array

    @classmethod
    def prepare(
        cls,
        patterns: Patterns,
        pixels: Array,
        n_scored: int,
        device: DeviceName = "auto",
        layout: Layout = "dense",
        *,
        compact: bool = False,
    ) -> "FrameBatch":
        """Read the chosen pixels of the patterns into memory of the device.

        pixels : (P,) places in a frame, each at most once, the scored ones first.
        layout : "dense" for bright frames, "sparse" if few pixels are lit (whole counts only).
        compact : store dense counts in as few bytes as they need on the GPU, too; otherwise they are float16
            there if they fit, which the products use without conversion.

        A frame's own mask forbids pixels of level 2; among the scored pixels, also those of level 1 (merge
        only).
        """
        check_pixels(to_numpy(pixels), n_scored, patterns.n_pixels)
        device = choose_device(device)
        pixels = to_device(pixels, "cuda" if patterns.is_on_gpu else "cpu")
        forbidden = forbidden_pixels(patterns, pixels, n_scored)
        missing = None if forbidden is None else move_photons(photons_from_dense(forbidden), device)
        read = read_lists if patterns.is_sparse else read_dense if patterns.is_on_gpu else read_host
        counts, sums = read(patterns, pixels, n_scored, forbidden, layout, device, compact)
        dense, photons = (None, counts) if layout == "sparse" else (counts, None)
        columns = (to_device(column, device) for column in sums)
        return cls(dense, photons, missing, len(pixels), n_scored, *columns)

    def __post_init__(self) -> None:
        if (self.dense is None) == (self.photons is None):
            raise OrienteerError("a batch of frames holds either dense frames or lists of photons.")

    def __len__(self) -> int:
        return len(self.scored_photons)

    def __repr__(self) -> str:
        kind = "sparse" if self.dense is None else f"dense {self.dense.dtype}"
        place = ", on GPU" if self.is_on_gpu else ""
        size = f"{len(self)} frames x {self.n_pixels} pixels ({self.n_scored} scored)"
        return f"<FrameBatch: {size}, {kind}{place}>"

    def __getitem__(self, frames: slice | Array) -> "FrameBatch":
        """The chosen frames: a slice, a boolean mask, or indices in any order."""
        if not isinstance(frames, slice):
            frames = array_namespace(self.squares).asarray(frames)
        return FrameBatch(
            None if self.dense is None else self.dense[frames],
            None if self.photons is None else self.photons[frames],
            None if self.missing is None else self.missing[frames],
            self.n_pixels, self.n_scored,
            self.scored_photons[frames], self.photons_total[frames], self.squares[frames],
        )  # fmt: skip

    @property
    def is_on_gpu(self) -> bool:
        """Whether the frames live in GPU memory."""
        return is_on_gpu(self.squares)

    @property
    def arrays(self) -> list[Array]:
        """All arrays of the batch; :meth:`with_arrays` rebuilds the batch from copies of them."""
        arrays = [self.scored_photons, self.photons_total, self.squares]
        for photons in (self.photons, self.missing):
            if photons is not None:
                arrays += [photons.start, photons.pixel, photons.count]
        return arrays if self.dense is None else [*arrays, self.dense]

    def with_arrays(self, arrays: Sequence[Array]) -> "FrameBatch":
        """The same frames with these copies of their arrays, in the order of :attr:`arrays`."""
        own = iter(arrays)
        sums = [next(own) for _ in range(3)]
        photons, missing = (
            None if lists is None else SparsePhotons(next(own), next(own), next(own), self.n_pixels)
            for lists in (self.photons, self.missing)
        )
        dense = None if self.dense is None else next(own)
        return FrameBatch(dense, photons, missing, self.n_pixels, self.n_scored, *sums)

    @cached_property
    def inverse_squares(self) -> Array:
        """1 / ``squares``, (D,) float64; 0 for a frame without light."""
        xp = array_namespace(self.squares)
        lit = self.squares > 0
        return xp.where(lit, 1.0 / xp.where(lit, self.squares, 1.0), 0.0)

    @cached_property
    def least_square(self) -> float:
        """The smallest of ``squares`` that is not 0; infinite if all frames are dark."""
        xp = array_namespace(self.squares)
        lit = xp.where(self.squares > 0, self.squares, np.inf)
        return float(lit.min()) if len(self) else np.inf

    def in_layout(self, layout: Layout) -> "FrameBatch":
        """The same frames; for "dense", lists of photons become dense counts."""
        if layout == "sparse" or self.photons is None:
            return self
        device: DeviceName = "cuda" if self.is_on_gpu else "cpu"
        return replace(self, dense=spread_photons(self.photons, device, compact=False), photons=None)


def scored_stop(photons: SparsePhotons, n_scored: int) -> Array:
    """End of each frame's scored entries: (D,) int64; they are ``photons.start[d]:scored_stop[d]``."""
    if n_scored >= photons.n_pixels:
        return photons.start[1:]
    xp = array_namespace(photons.start)
    before = xp.zeros(len(photons.pixel) + 1, dtype=np.int64)
    before[1:] = xp.cumulative_sum(photons.pixel < n_scored, dtype=np.int64)
    return photons.start[:-1] + before[photons.start[1:]] - before[photons.start[:-1]]
