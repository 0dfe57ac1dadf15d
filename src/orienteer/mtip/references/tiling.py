"""Tiles of slices as blocks of bytes: which rows each has, and how its numbers are written."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np

from orienteer.compute.arrays import Array
from orienteer.errors import OrienteerError

KeptAs: TypeAlias = Literal["float32", "float16"]
# Every tile begins at a multiple of this many bytes; what float16 has to be multiplied with comes before it.
_ALIGNED = 64


@dataclass(frozen=True)
class Tiling:
    """Rows cut into tiles: tile t is rows starts[t] .. starts[t + 1], and has a slot of ``slot_bytes``.

    by_pixel : tiles are (P, T) instead of (T, P).
    kept_as : "float32", as the slices are; or "float16", half as large, each number wrong by at most 1 / 2048
        of itself where it is no less than 4e-9 of the largest of its tile.
    """

    starts: tuple[int, ...]
    n_pixels: int
    by_pixel: bool = False
    kept_as: KeptAs = "float32"

    def __post_init__(self) -> None:
        if len(self.starts) < 2 or any(b <= a for a, b in pairwise(self.starts)) or self.n_pixels < 1:
            raise OrienteerError(
                f"{len(self.starts) - 1} tiles of {self.n_pixels} pixels cannot be kept.",
                "Give at least one tile, and to each at least one row and one pixel.",
            )

    @classmethod
    def even(cls, n_rows: int, tile_rows: int, n_pixels: int, **options: Any) -> "Tiling":
        """Tiles of so many rows; the last one has what is left."""
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
        """Bytes of the largest tile, as it is kept."""
        rows = max(b - a for a, b in pairwise(self.starts))
        nbytes = rows * self.n_pixels * np.dtype(self.kept_as).itemsize
        nbytes += 0 if self.kept_as == "float32" else _ALIGNED
        return -(-nbytes // _ALIGNED) * _ALIGNED

    @property
    def in_place(self) -> bool:
        """Whether a slot can be read as it is."""
        return self.kept_as == "float32"

    def write(self, tile: int, values: Array, slot: Array) -> None:
        """Put a tile into its slot, (slot_bytes,)."""
        shape = self.shape(tile)
        if self.in_place:
            self._numbers(tile, slot)[...] = values.reshape(shape)
            return
        largest = float(abs(values).max())
        if not np.isfinite(largest):
            raise OrienteerError("slices hold values that are not finite numbers, and cannot be kept.")
        # A power of two takes no digits.
        scale = np.float32(2.0 ** (np.ceil(np.log2(largest)) - 15)) if largest > 0 else np.float32(1)
        slot[:4].view(np.float32)[0] = scale
        np.multiply(values.reshape(shape), 1 / scale, out=self._numbers(tile, slot), casting="same_kind")

    def read(self, tile: int, slot: Array, out: Array | None = None) -> Array:
        """The tile of a slot, float32: in place where it can be, else in ``out``, (P T or more,) float32."""
        numbers = self._numbers(tile, slot)
        if self.in_place:
            return numbers
        assert out is not None
        result = out[: numbers.size].reshape(numbers.shape)
        np.multiply(numbers, slot[:4].view(np.float32)[0], out=result, dtype=np.float32)
        return result

    def _numbers(self, tile: int, slot: Array) -> Array:
        shape, first = self.shape(tile), 0 if self.in_place else _ALIGNED
        dtype = np.dtype(self.kept_as)
        return slot[first : first + shape[0] * shape[1] * dtype.itemsize].view(dtype).reshape(shape)
