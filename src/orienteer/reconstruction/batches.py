"""The frames of a stage in batches: sorted into groups of similar fluence, ready on the device."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import DeviceName
from orienteer.likelihood.fluence import fluence_groups
from orienteer.likelihood.frames import FrameBatch
from orienteer.likelihood.product import Product, product_of
from orienteer.reconstruction.expectation import Batch, Group
from orienteer.reconstruction.frame_store import FrameStore
from orienteer.reconstruction.plan import Plan

# Frames whose fluences differ by less than this factor share their slices; to first order each is scored at
# its own fluence.
_FLUENCE_RATIO = 2.0


@dataclass(frozen=True, eq=False)
class StageFrames:
    """The frames of a store over the pixels of one stage.

    places : (P,) the pixel list, places in the table of pixels, ``n_scored`` of them first.
    grouping_fluence : (N,) float64, by which frames are sorted into groups.
    """

    store: FrameStore
    places: NDArray[np.int64]
    n_scored: int
    device: DeviceName
    plan: Plan
    grouping_fluence: NDArray[np.float64]

    @property
    def is_grouped(self) -> bool:
        """Whether frames of different fluence are kept apart."""
        return bool(np.ptp(self.grouping_fluence) > 0)

    def prepare_all(self, frames: NDArray[np.int64]) -> "Iterator[PreparedFrames]":
        """The frames in batches of the size that was planned."""
        if not len(frames):
            return
        frames = (
            frames[np.argsort(self.grouping_fluence[frames], kind="stable")] if self.is_grouped else frames
        )
        for chunk in self.store.chunks(frames, self.plan.batch_frames):
            yield self.prepare(chunk)

    def prepare(self, frames: NDArray[np.int64]) -> "PreparedFrames":
        """The frames as one batch."""
        bounds = np.array([0, len(frames)])
        if self.is_grouped:
            groups = fluence_groups(self.grouping_fluence[frames], _FLUENCE_RATIO)
            frames, bounds = frames[groups.order], groups.bounds
        parts = []
        for first, last in pairwise(bounds.tolist()):
            if last > first:
                batch = self.store.batch(
                    frames[first:last], self.places, self.n_scored, self.device, self.plan.layout
                )
                parts.append((slice(first, last), batch, product_of(batch, self.plan.precision)))  # type: ignore[arg-type]
        return PreparedFrames(frames, parts)


class PreparedFrames:
    """Frames on the device; with the fluences of the moment they make a batch."""

    def __init__(self, places: NDArray[np.int64], parts: list[tuple[slice, FrameBatch, Product]]) -> None:
        self.places, self.parts = places, parts

    def batch(
        self, fluence: NDArray[np.float64], xp: Any, weight: NDArray[np.float64] | None = None
    ) -> Batch:
        """The batch at these fluences (N,), and with these weights (N,) in the merge."""
        own = fluence[self.places]
        # At the mean fluence of a group the signal's share of all its photons is right.
        groups = tuple(
            Group(columns, frames, product, float(own[columns].mean()), not np.ptp(own[columns]) > 0)
            for columns, frames, product in self.parts
        )
        weights = None if weight is None else xp.asarray(weight[self.places].astype(np.float32))
        return Batch(self.places, groups, xp.asarray(own), weights)


class StreamedBatches:
    """Batches that are read from disk when their turn comes."""

    def __init__(
        self, stage: StageFrames, frames: NDArray[np.int64], fluence: NDArray[np.float64], xp: Any,
        weight: NDArray[np.float64] | None,
    ) -> None:  # fmt: skip
        self._stage, self._frames, self._fluence, self._xp, self._weight = stage, frames, fluence, xp, weight

    def __len__(self) -> int:
        return max(1, -(-len(self._frames) // self._stage.plan.batch_frames))

    def __iter__(self) -> Iterator[Batch]:
        for prepared in self._stage.prepare_all(self._frames):
            yield prepared.batch(self._fluence, self._xp, self._weight)
