"""PartOfSource: some frames of a data set, as a source of their own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

import orienteer
from orienteer.compute.arrays import DeviceName
from orienteer.compute.words import counted
from orienteer.errors import OrienteerError
from orienteer.source.base import Source
from orienteer.source.patterns import Patterns, concatenate

if TYPE_CHECKING:
    from orienteer.detector.detector import Detector, Polarisation

# Wanted frames whose numbers differ by at most this are read together, and those between them dropped.
_GAP = 8
_BATCH_BYTES = 64 * 2**20


class PartOfSource:
    """Some frames of another source, as a source: they keep their ids, and are read in batches, not copied.

    source : the source that holds the frames.
    places : (n,) ascending frame numbers in that source.
    name : the name of the part, such as "half 1".
    """

    def __init__(self, source: Source, places: NDArray[np.int64], name: str) -> None:
        self._whole, self.places, self.name = source, np.asarray(places, dtype=np.int64), name

    def __repr__(self) -> str:
        return f"<{self.name}: {counted(len(self), 'frame')} of {self._whole!r}>"

    def __len__(self) -> int:
        return len(self.places)

    def show(self, title: str = "", *, wavelength_A: float | None = None) -> Any:
        """The picture of the data set: mean frame, radial profile, photons per frame, a few frames."""
        return orienteer.show(self, title, wavelength_A=wavelength_A)  # loads plot/, which imports source/

    @property
    def format(self) -> str:
        """The name of the format of the whole source."""
        return self._whole.format

    @property
    def path(self) -> Path | None:
        """None: the file of the whole source is not the file of a part."""
        return None

    @property
    def detector(self) -> Detector | None:
        """The pixels."""
        return self._whole.detector

    @property
    def mask(self) -> NDArray[np.uint8] | None:
        """The mask that the data themselves carry."""
        return self._whole.mask

    @property
    def polarisation(self) -> Polarisation | None:
        """How the beam was polarised."""
        return self._whole.polarisation

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata of the whole source, and the name of this part."""
        return {**self._whole.metadata, "part": self.name}

    @property
    def frame_shape(self) -> tuple[int, ...]:
        """Shape of one frame."""
        return self._whole.frame_shape

    @property
    def n_pixels(self) -> int:
        """Pixels of a frame."""
        return self._whole.n_pixels

    @property
    def n_frames(self) -> int:
        """Frames of this part."""
        return len(self.places)

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns that ``read`` returns."""
        return self._whole.column_names

    @property
    def is_sparse(self) -> bool:
        """Whether frames come as lists of photons."""
        return self._whole.is_sparse

    def read(self, frames: slice | ArrayLike = slice(None)) -> Patterns:
        """The chosen frames of this part with their columns."""
        places = self._places_of(frames)
        ordered, back = np.unique(places, return_inverse=True)
        if not len(ordered):
            return self._whole.read(slice(0, 0))
        # Half of a set is about every second frame: reading the others too is faster than skipping them.
        spans = np.split(ordered, np.flatnonzero(np.diff(ordered) > _GAP) + 1)
        parts = [self._whole.read(slice(int(one[0]), int(one[-1]) + 1))[one - one[0]] for one in spans]
        return concatenate(parts)[back]

    def batches(self, size: int | None = None, device: DeviceName = "cpu") -> Iterator[Patterns]:
        """All frames in order, ``size`` at a time (by default as many as fit in 64 MiB)."""
        step = max(1, _BATCH_BYTES // (4 * self.n_pixels)) if size is None else size
        if step < 1:
            raise OrienteerError(f"a batch of {step} frames was asked for; it needs at least 1.")
        for first in range(0, len(self), step):
            yield self.read(slice(first, first + step)).to(device)

    def event_ids(self, frames: slice | ArrayLike = slice(None)) -> NDArray[np.uint64]:
        """The event ids (n,) of the chosen frames, the same as in the whole source."""
        places = self._places_of(frames)
        first, end = _span(places)
        return self._whole.event_ids(slice(first, end))[places - first]

    def read_columns(
        self, names: Collection[str] | None = None, frames: slice | ArrayLike = slice(None)
    ) -> dict[str, NDArray[Any]]:
        """Columns (n, ...) of the chosen frames by name."""
        places = self._places_of(frames)
        first, end = _span(places)
        columns = self._whole.read_columns(names, slice(first, end))
        return {name: column[places - first] for name, column in columns.items()}

    def refresh(self) -> int:
        """The number of frames; a part never grows."""
        return len(self)

    def with_detector(self, detector: Detector) -> Self:
        """The same part of the same data with this detector."""
        return type(self)(self._whole.with_detector(detector), self.places, self.name)

    def close(self) -> None:
        """Do nothing: whoever opened the whole source closes it."""

    def _places_of(self, frames: slice | ArrayLike) -> NDArray[np.int64]:
        chosen = frames if isinstance(frames, slice) else np.atleast_1d(np.asarray(frames))
        if not isinstance(chosen, slice) and not chosen.size:
            chosen = chosen.astype(np.int64)
        try:
            return self.places[chosen]
        except IndexError as error:
            raise OrienteerError(f"{self.name}: {error}.", f"It has {counted(len(self), 'frame')}.") from None


def _span(places: NDArray[np.int64]) -> tuple[int, int]:
    """The first place and one past the last, so that a batch of a long data set reads only this range."""
    return (int(places.min()), int(places.max()) + 1) if len(places) else (0, 0)
