"""Responsibilities: the orientations that answer for each frame, as lists."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from orienteer.compute.arrays import Array, DeviceName, array_namespace, to_device
from orienteer.errors import OrienteerError
from orienteer.posterior.grouping import group_by, owner_of


class ByRow(NamedTuple):
    """The same probabilities, listed row after row.

    start : (K + 1,) int64; row k has the entries start[k] .. start[k + 1].
    frame : (n,) int32, ascending within a row.
    probability : (n,) float32.
    """

    start: Array
    frame: Array
    probability: Array


@dataclass(frozen=True, eq=False)
class Responsibilities:
    """Probabilities of D frames over K rows of orientations; what is not listed is 0.

    n_rows : K.
    start : (D + 1,) int64; frame d has the entries start[d] .. start[d + 1].
    row : (n,) int32, ascending within a frame.
    probability : (n,) float32, sum to 1 in each frame that any row can explain.
    """

    n_rows: int
    start: Array
    row: Array
    probability: Array

    def __post_init__(self) -> None:
        n = len(self.row)
        if self.row.shape != (n,) or self.probability.shape != (n,) or self.start.ndim != 1:
            raise OrienteerError(
                f"responsibilities are lists of one length; got {self.start.shape}, {self.row.shape} and "
                f"{self.probability.shape}."
            )
        if len(self.start) == 0 or int(self.start[0]) != 0 or int(self.start[-1]) != n:
            raise OrienteerError(f"the frames of {n} responsibilities must begin at 0 and end at {n}.")

    def __len__(self) -> int:
        return len(self.row)

    @property
    def n_frames(self) -> int:
        return len(self.start) - 1

    @property
    def frame(self) -> Array:
        """The frame of every entry, (n,) int32."""
        return owner_of(self.start).astype(np.int32)

    def by_row(self) -> ByRow:
        """The same probabilities, listed row after row."""
        start, order = group_by(self.row, self.n_rows)
        return ByRow(start, self.frame[order], self.probability[order])

    def row_mass(self, frame_weights: Array | None = None) -> Array:
        """Sum over frames of the (weighted) probabilities of every row, (K,) float64."""
        xp = array_namespace(self.row)
        weights = self.probability.astype(np.float64)
        if frame_weights is not None:
            weights = weights * frame_weights[self.frame]
        # Multiples of 2^-32 add up without rounding, so the order of the work changes no bit.
        weights = xp.round(weights * 2.0**32) * 2.0**-32
        return xp.bincount(self.row, weights=weights, minlength=self.n_rows)

    def dense(self) -> Array:
        """The whole matrix, (K, D) float32."""
        xp = array_namespace(self.row)
        matrix = xp.zeros((self.n_rows, self.n_frames), dtype=np.float32)
        matrix[self.row, self.frame] = self.probability
        return matrix

    def to(self, device: DeviceName) -> "Responsibilities":
        """The same on a device."""
        lists = (to_device(part, device) for part in (self.start, self.row, self.probability))
        return Responsibilities(self.n_rows, *lists)
