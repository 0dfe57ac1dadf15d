"""Rows: all that a frame may show.  A row is a pose of a model, or a junk class, which does not rotate.

The rows of model m are m K .. (m + 1) K, and the junk classes come last.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from orienteer.compute.arrays import Array


@dataclass(frozen=True, eq=False)
class Poses:
    """K orientations on the device: ``matrices`` (K, 3, 3) float32, the transposes of the rotations, and
    ``log_weights`` (K,) float32, the prior."""

    matrices: Array
    log_weights: Array

    def __len__(self) -> int:
        return len(self.matrices)


@dataclass(frozen=True, eq=False)
class Tile:
    """Rows first .. last of all rows: poses ``poses`` of model ``model``, or the junk classes (None)."""

    first: int
    last: int
    model: int | None
    poses: slice


@dataclass(eq=False)
class RowSpace:
    """All rows: M models times K poses, then J junk classes, cut into tiles.

    log_prior : (M K + J,) float32 on the device.
    """

    poses: Poses
    n_models: int
    log_prior: Array
    n_junk: int = 0
    tile_rows: int = 128

    def __len__(self) -> int:
        return self.n_models * len(self.poses) + self.n_junk

    def tiles(self) -> Iterator[Tile]:
        """The rows in tiles; no tile has rows of two models."""
        K = len(self.poses)
        for m in range(self.n_models):
            for first in range(0, K, self.tile_rows):
                last = min(first + self.tile_rows, K)
                yield Tile(m * K + first, m * K + last, m, slice(first, last))
        if self.n_junk:
            first = self.n_models * K
            yield Tile(first, first + self.n_junk, None, slice(0))
