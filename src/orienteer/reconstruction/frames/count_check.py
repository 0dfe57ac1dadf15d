"""Check all frames for doubtful counts: values that can hardly be photons, and frames without any."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import to_numpy
from orienteer.compute.ranks.comm import Comm
from orienteer.compute.words import counted
from orienteer.errors import OrienteerError
from orienteer.source.patterns import Patterns, SparsePhotons

# Single precision holds whole numbers exactly up to this, and a photon detector counts far fewer.
_LARGEST_EXACT = 2**24
# Largest count that a list of photons can hold.
_LARGEST_COUNT = 2**31 - 1
_FEW_FRAMES = 100
# Doubtful values, and empty frames, are mentioned if their share is larger than this.
_FEW_VALUES, _MANY_FRAMES = 0.001, 0.5
# A signal whose lowest value lies above this has an offset.
_OFFSET = 0.1
_WHAT_TO_DO = "mask the pixel, leave the frame out, or convert the data to photons."


@dataclass
class CountCheck:
    """Statistics of the frames checked so far.

    name : of the data, for messages.
    n_frames, n_empty : number of frames, and of those without a photon.
    n_values, n_negative, n_broken : number of values of calibrated signal; of negative ones; of ones that are
        not whole numbers.
    smallest : lowest value of the signal.
    largest : a sentence about the largest count beyond single precision, and where it is; "" if there is
        none.
    first : place of the first of these frames in the data.
    """

    name: str
    n_frames: int = 0
    n_empty: int = 0
    n_values: int = 0
    n_negative: int = 0
    n_broken: int = 0
    smallest: float = np.inf
    largest: str = ""
    first: int = 0
    _largest: float = _LARGEST_EXACT

    def add(self, batch: Patterns, usable: NDArray[np.int64]) -> None:
        """Check the next frames; counts that no list can hold are refused.

        usable : (U,) the usable pixels.
        """
        frame, pixel, value = _larger_than(self._largest, batch, usable)
        if value > self._largest:
            where = f"frame {self.first + self.n_frames + frame} counts {value:,.0f} in pixel {pixel}"
            if value > _LARGEST_COUNT and not _is_signal(batch):
                raise OrienteerError(
                    f"{self.name}: {where}, more than any detector counts.",
                    f"{_WHAT_TO_DO[:1].upper()}{_WHAT_TO_DO[1:]}",
                )
            self._largest, self.largest = value, where
        self.n_frames += len(batch)
        if _is_signal(batch):
            values = to_numpy(batch.frames)[:, usable]
            self.n_values += values.size
            self.n_negative += int((values < 0).sum())
            self.n_broken += int((values != np.rint(values)).sum())
            self.smallest = min(self.smallest, float(values.min(initial=np.inf)))

    def joined(self, comm: Comm) -> "CountCheck":
        """The statistics of all ranks together, each of which checked frames of its own."""
        found = comm.gather(self)
        worst = max(found, key=lambda each: each._largest)
        return CountCheck(
            self.name,
            n_frames=sum(each.n_frames for each in found),
            n_values=sum(each.n_values for each in found),
            n_negative=sum(each.n_negative for each in found),
            n_broken=sum(each.n_broken for each in found),
            smallest=min(each.smallest for each in found),
            largest=worst.largest,
        )

    def remarks(self, counts_photons: bool) -> list[str]:
        """Remarks for the user.

        counts_photons : whether the likelihood is one of photon counting.
        """
        found = []
        if self.n_frames < _FEW_FRAMES:
            few = counted(self.n_frames, "frame is", "frames are")
            found.append(f"{few} few; a reconstruction needs hundreds or thousands.")
        if self.n_empty > _MANY_FRAMES * self.n_frames:
            found.append(f"{self.n_empty:,} of {self.n_frames:,} frames hold no photon at all.")
        if self.largest:
            found.append(
                f"{self.largest}, too many for photons and for the digits of single precision; {_WHAT_TO_DO}"
            )
        if counts_photons:
            found += self._not_photons()
        return found

    def _not_photons(self) -> list[str]:
        what = ""
        if self.n_negative > _FEW_VALUES * self.n_values:
            what = f"{self.n_negative / self.n_values:.1%} of the values are negative"
        elif self.n_broken > _FEW_VALUES * self.n_values and self.smallest > _OFFSET:
            what = f"no value is below {self.smallest:.3g}"
        if not what:
            return []
        return [
            f"{what}, so these are not numbers of photons, which the likelihood needs; convert the data to "
            "photons, or give --likelihood gaussian."
        ]


def _is_signal(batch: Patterns) -> bool:
    return not batch.is_sparse and batch.frames.dtype.kind == "f"


def _larger_than(limit: float, batch: Patterns, usable: NDArray[np.int64]) -> tuple[int, int, float]:
    """Frame, pixel and value of the largest usable value of a batch; zeros if none is above the limit."""
    frames = batch.frames
    values = to_numpy(frames.count if isinstance(frames, SparsePhotons) else frames)
    # A quick test first, because nearly every batch is sound.  Pixels that are never used may hold NaN.
    if not values.size or values.max() <= limit:
        return 0, 0, 0.0
    if isinstance(frames, SparsePhotons):
        counts = np.where(np.isin(to_numpy(frames.pixel), usable), values, 0)
        place = int(np.argmax(counts))
        frame = int(np.searchsorted(to_numpy(frames.start), place, side="right")) - 1
        return frame, int(to_numpy(frames.pixel)[place]), float(counts[place])
    frame, place = divmod(int(np.argmax(values[:, usable])), len(usable))
    return frame, int(usable[place]), float(values[frame, usable[place]])
