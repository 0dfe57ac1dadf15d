"""Source: where patterns come from, one interface for files, streams and simulations.

A file format is one module with a ``FileSource`` (``file_source.py``) and a ``PatternWriter``
(``writer.py``).  It is listed in ``opening.py``, where ``FormatModule`` says what such a module must offer.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orienteer.compute.arrays import DeviceName
from orienteer.source.patterns import Patterns

if TYPE_CHECKING:
    from orienteer.detector.detector import Detector, Polarisation


@runtime_checkable
class Source(Protocol):
    """A set of patterns that is read in batches.  Opening one reads no frames.

    >>> import orienteer
    >>> source = orienteer.open(np.ones((100, 16, 16), dtype=np.uint8))
    >>> isinstance(source, Source), len(source), source.frame_shape
    (True, 100, (16, 16))
    >>> [len(patterns) for patterns in source.batches(40)]
    [40, 40, 20]
    """

    @property
    def format(self) -> str:
        """The name of the format, such as "CXI"."""
        ...

    @property
    def path(self) -> Path | None:
        """The file; None if the data are not in a file."""
        ...

    @property
    def detector(self) -> Detector | None:
        """The pixels, with ``mask`` combined into their mask; None if the geometry is unknown."""
        ...

    @property
    def mask(self) -> NDArray[np.uint8] | None:
        """(P,) levels of ``PixelUse`` that the data themselves carry; None if they carry no mask."""
        ...

    @property
    def polarisation(self) -> Polarisation | None:
        """How the beam was polarised; None if the data do not say."""
        ...

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Facts that hold for the whole set (seed, creator, settings)."""
        ...

    @property
    def frame_shape(self) -> tuple[int, ...]:
        """Shape of one frame as stored; its product is ``n_pixels``."""
        ...

    @property
    def n_pixels(self) -> int:
        """Pixels of a frame."""
        ...

    @property
    def n_frames(self) -> int | None:
        """Number of frames so far; None for an endless source, whose ``len`` raises a TypeError."""
        ...

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns that ``read`` returns with the frames."""
        ...

    @property
    def is_sparse(self) -> bool:
        """Whether frames come as lists of photons."""
        ...

    def __len__(self) -> int: ...

    def read(self, frames: slice | ArrayLike = slice(None)) -> Patterns:
        """The chosen frames (a slice, or indices in any order) with their columns."""
        ...

    def batches(self, size: int | None = None, device: DeviceName = "cpu") -> Iterator[Patterns]:
        """All frames in order, ``size`` at a time (by default as many as fit in 64 MiB)."""
        ...

    def event_ids(self, frames: slice | ArrayLike = slice(None)) -> NDArray[np.uint64]:
        """The event ids (n,) of the chosen frames, without reading the frames."""
        ...

    def read_columns(
        self, names: Collection[str] | None = None, frames: slice | ArrayLike = slice(None)
    ) -> dict[str, NDArray[Any]]:
        """Columns (n, ...) of the chosen frames by name, by default all columns; no frame is read."""
        ...

    def refresh(self) -> int:
        """Look again for new frames; returns how many there are now."""
        ...

    def with_detector(self, detector: Detector) -> Source:
        """The same data with this detector; its mask and that of the data are combined by maximum."""
        ...

    def close(self) -> None:
        """Close what is open."""
        ...


def shapes_fit(shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether two shapes count the same pixels in the same order: one is flat, or rows are equally long.

    >>> shapes_fit((16, 512, 128), (8192, 128)), shapes_fit((20000,), (100, 200))
    (True, True)
    >>> shapes_fit((100, 200), (200, 100))
    False
    """
    axes = [tuple(n for n in one if n != 1) for one in (shape, other)]
    if math.prod(shape) != math.prod(other):
        return False
    return min(map(len, axes)) <= 1 or axes[0][-1] == axes[1][-1]
