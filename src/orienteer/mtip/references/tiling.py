"""Tiles of slices as blocks of bytes: the rows of each tile, and the layout of its numbers."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from orienteer.compute.arrays import Array
from orienteer.errors import OrienteerError

# The size of a slot is a multiple of this many bytes, so that every slot begins at one.
_ALIGNED = 64
_NUMBER = np.dtype(np.float32)


@dataclass(frozen=True)
class Tiling:
    """Rows cut into tiles: tile t is rows starts[t] .. starts[t + 1], and has a slot of ``slot_bytes``.

    by_pixel : tiles are (P, T) instead of (T, P).
    """

    starts: tuple[int, ...]
    n_pixels: int
    by_pixel: bool = False

    def __post_init__(self) -> None:
        if len(self.starts) < 2 or any(b <= a for a, b in pairwise(self.starts)) or self.n_pixels < 1:
            raise OrienteerError(
                f"{len(self.starts) - 1} tiles of {self.n_pixels} pixels cannot be kept.",
                "Give at least one tile, with at least one row and one pixel each.",
            )

    @classmethod
    def even(cls, n_rows: int, tile_rows: int, n_pixels: int, **options: Any) -> "Tiling":
        """Tiles of ``tile_rows`` rows; the last one has the remainder."""
        return cls((*range(0, n_rows, tile_rows), n_rows), n_pixels, **options)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def n_rows(self) -> int:
        """Rows of all tiles."""
        return self.starts[-1] - self.starts[0]

    def rows(self, tile: int) -> slice:
        """The rows of a tile."""
        return slice(self.starts[tile], self.starts[tile + 1])

    def shape(self, tile: int) -> tuple[int, int]:
        """(T, P), or (P, T) by pixel."""
        n = self.starts[tile + 1] - self.starts[tile]
        return (self.n_pixels, n) if self.by_pixel else (n, self.n_pixels)

    @cached_property
    def slot_bytes(self) -> int:
        """Bytes of the largest tile, rounded up."""
        rows = max(b - a for a, b in pairwise(self.starts))
        nbytes = rows * self.n_pixels * _NUMBER.itemsize
        return -(-nbytes // _ALIGNED) * _ALIGNED

    def write(self, tile: int, values: Array, slot: Array) -> None:
        """Put a tile into its slot, (slot_bytes,)."""
        self.read(tile, slot)[...] = values.reshape(self.shape(tile))

    def read(self, tile: int, slot: Array) -> Array:
        """The tile in a slot, float32, without a copy."""
        n_slow, n_fast = self.shape(tile)
        return slot[: n_slow * n_fast * _NUMBER.itemsize].view(_NUMBER).reshape(n_slow, n_fast)
