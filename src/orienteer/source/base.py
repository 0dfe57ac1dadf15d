"""Source: where patterns come from, one interface for files, streams and simulations.

A file format is one module with a ``FileSource`` (``file_source.py``) and a ``PatternWriter`` (``writer.py``)
that is listed in ``opening.py``, where ``FormatModule`` says what it offers.
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
    """A set of patterns that is read by batch.  Opening one reads no frames.

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
        """The file; None for what has no file."""
        ...

    @property
    def detector(self) -> Detector | None:
        """The pixels, their mask combined with ``mask``; None when nobody has said where they are."""
        ...

    @property
    def mask(self) -> NDArray[np.uint8] | None:
        """(P,) levels of ``PixelUse``: what the data themselves forbid; None when they do not say."""
        ...

    @property
    def polarisation(self) -> Polarisation | None:
        """How the beam was polarised; None when the data do not say."""
        ...

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Constant facts of the whole set (seed, creator, settings)."""
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
        """Frames there are now; None for a source without an end, whose ``len`` is a TypeError."""
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
        """The names (n,) of the chosen frames; no frame is read."""
        ...

    def read_columns(
        self, names: Collection[str] | None = None, frames: slice | ArrayLike = slice(None)
    ) -> dict[str, NDArray[Any]]:
        """Columns (n, ...) of the chosen frames by name, by default all of them; no frame is read."""
        ...

    def refresh(self) -> int:
        """Look again for new frames; how many there are now."""
        ...

    def with_detector(self, detector: Detector) -> Source:
        """The same data with this detector, whose mask is combined with that of the data by maximum."""
        ...

    def close(self) -> None:
        """Let go of what is open."""
        ...


def shapes_fit(shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether two shapes number the same pixels in the same order: one is flat, or rows have one length.

    >>> shapes_fit((16, 512, 128), (8192, 128)), shapes_fit((20000,), (100, 200))
    (True, True)
    >>> shapes_fit((100, 200), (200, 100))
    False
    """
    axes = [tuple(n for n in one if n != 1) for one in (shape, other)]
    if math.prod(shape) != math.prod(other):
        return False
    return min(map(len, axes)) <= 1 or axes[0][-1] == axes[1][-1]
