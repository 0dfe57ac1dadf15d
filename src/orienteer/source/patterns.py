"""Patterns: a batch of frames, dense or as lists of photons, with one row of metadata per frame."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from orienteer.compute.arrays import Array, DeviceName, array_namespace, to_device
from orienteer.errors import OrienteerError


@dataclass(frozen=True, eq=False)
class SparsePhotons:
    """Photon counts of N frames as lists of the lit pixels, in the layout of a CSR matrix.

    Frame d holds the entries ``start[d]:start[d + 1]``; its pixels ascend and no pixel stands twice.

    start : (N + 1,) int64, first entry of each frame.
    pixel : (L,) int32, flat pixel index.
    count : (L,) int32, photons, at least 1.
    n_pixels : pixels of a frame.
    """

    start: Array
    pixel: Array
    count: Array
    n_pixels: int

    def __len__(self) -> int:
        return len(self.start) - 1


@dataclass(frozen=True, eq=False)
class Patterns:
    """N frames of P pixels, in one storage that gives both views.

    frames : (N, P) array of counts (integers) or calibrated signal (floats), or :class:`SparsePhotons`.
    event_id : (N,) uint64, the stable name of each shot; unique in a data set.
    columns : per-frame metadata, each (N, ...).  Names carry their unit (``wavelength_A``); what only a
        simulation can know starts with ``truth_`` and is never read by a reconstruction.

    >>> patterns = Patterns(np.array([[0, 2, 0, 1], [0, 0, 0, 0]]))
    >>> patterns.sparse().pixel
    array([1, 3], dtype=int32)
    >>> patterns[1:].event_id
    array([1], dtype=uint64)
    """

    frames: Array | SparsePhotons
    event_id: Array = None
    columns: Mapping[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.frames, SparsePhotons) and self.frames.ndim != 2:
            raise OrienteerError(f"frames have shape {self.frames.shape}; expected (n_patterns, n_pixels).")
        if self.event_id is None:
            object.__setattr__(self, "event_id", np.arange(len(self), dtype=np.uint64))
        for name, column in {"event_id": self.event_id, **self.columns}.items():
            if len(column) != len(self):
                raise OrienteerError(f"column '{name}' has {len(column)} rows for {len(self)} frames.")

    def __len__(self) -> int:
        return len(self.frames)

    @property
    def n_pixels(self) -> int:
        """Pixels of a frame."""
        return self.frames.n_pixels if isinstance(self.frames, SparsePhotons) else int(self.frames.shape[1])

    @property
    def is_sparse(self) -> bool:
        """Whether the frames are stored as lists of photons."""
        return isinstance(self.frames, SparsePhotons)
