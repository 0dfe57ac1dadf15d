"""Responsibilities: the probabilities of the orientations of each frame, as lists."""

from dataclasses import dataclass

import numpy as np

from orienteer.compute.arrays import Array
from orienteer.errors import OrienteerError
from orienteer.posterior.grouping import owner_of


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
                f"responsibilities need lists of one length; got {self.start.shape}, {self.row.shape} and "
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
        return owner_of(self.start, len(self)).astype(np.int32)
