"""Source: where patterns come from, one interface for files, streams and simulations."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

from numpy.typing import ArrayLike

from orienteer.compute.arrays import DeviceName
from orienteer.detector.detector import Detector
from orienteer.source.patterns import Patterns


@runtime_checkable
class Source(Protocol):
    """A set of patterns that is read by batch.  Opening one reads no frames.

    format : the name of the file format, such as "CXI".
    path : the file; None for what has no file.
    detector : the pixels; None when the data carry no geometry (give ``geometry=`` on opening).
    frame_shape : shape of one frame as stored; its product is n_pixels.
    n_pixels : pixels of a frame.
    column_names : the metadata columns that ``read`` returns with the frames.
    is_sparse : whether frames come as lists of photons.
    """

    format: str
    path: Path | None
    detector: Detector | None
    frame_shape: tuple[int, ...]
    column_names: tuple[str, ...]
    is_sparse: bool

    def __len__(self) -> int: ...

    @property
    def n_pixels(self) -> int: ...

    def read(self, frames: slice | ArrayLike = slice(None)) -> Patterns:
        """The chosen frames (a slice, or indices in any order) with their columns."""
        ...

    def batches(self, size: int | None = None, device: DeviceName = "cpu") -> Iterator[Patterns]:
        """All frames in order, ``size`` at a time (by default as many as fit in 64 MiB)."""
        ...
