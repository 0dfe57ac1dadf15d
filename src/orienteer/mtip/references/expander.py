"""An expander that takes the slices of a tile of rows from references."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from orienteer.compute.arrays import Array, array_namespace
from orienteer.mtip.references.references import Recomputed, References
from orienteer.mtip.references.tiling import Tiling
from orienteer.reconstruction.orienting.expander import Expander
from orienteer.reconstruction.orienting.rows import RowSpace, Tile
from orienteer.slicing.turned import TurnedVolume


def tiling_of(rows: RowSpace, n_pixels: int, by_pixel: bool) -> Tiling:
    """The tiles of all models of a row space, without those of junk classes, which have no slices."""
    starts = [tile.first for tile in rows.tiles() if tile.model is not None]
    return Tiling((*starts, rows.n_models * len(rows.poses)), n_pixels, by_pixel)


@dataclass(eq=False)
class ReferenceExpander(Expander):
    """An expander that takes the slices of one row space from references, and makes those of all others.

    references : opened for ``tiling_of(space, ...)``.  The expander fills them with the slices of ``models``,
        so all ranks that share them make their expanders together.
    """

    references: References | None = None
    space: RowSpace | None = None

    def __post_init__(self) -> None:
        self._pending: Iterator[tuple[int, Array]] = iter(())
        self._ahead: deque[int] = deque()
        if self.references is None or self.space is None:
            return
        self._tiles = [tile for tile in self.space.tiles() if tile.model is not None]
        self._number = {tile.first: number for number, tile in enumerate(self._tiles)}
        by_pixel, space = self.references.tiling.by_pixel, self.space
        self.references.fill(lambda number: self._made(space, self._tiles[number], by_pixel))

    def tiles(self, rows: RowSpace) -> Sequence[Tile]:
        """Tiles in the order of the references, then those of junk; this begins a new visit of the slices."""
        if not self._are_of(rows) or isinstance(self.references, Recomputed):
            return super().tiles(rows)
        assert self.references is not None
        self._ahead, self._pending = deque(self.references.order), self.references.visit()
        junk = [tile for tile in rows.tiles() if tile.model is None]
        return [self._tiles[number] for number in self._ahead] + junk

    def turned(self, rows: RowSpace, tile: Tile) -> TurnedVolume | Array:
        """Slices read from references if they are kept there; else made from the turned volume."""
        if not self._are_of(rows) or isinstance(self.references, Recomputed):
            return super().turned(rows, tile)
        return self.slices(rows, tile, True)

    def slices(self, rows: RowSpace, tile: Tile, by_pixel: bool) -> Array:
        """(T, P) or (P, T) float32, valid until the next are requested."""
        if tile.model is None or not self._are_of(rows):
            return self._made(rows, tile, by_pixel)
        assert self.references is not None
        number = self._number[tile.first]
        if self._ahead and self._ahead[0] == number:
            self._ahead.popleft()
            found = next(self._pending)[1]
        else:
            # Ranks that claim tiles when they are free ask out of order: fetch one tile at a time.
            self._ahead, self._pending = deque(), iter(())
            found = self.references.tile(number)
        if by_pixel == self.references.tiling.by_pixel:
            return found
        return array_namespace(found).ascontiguousarray(found.T)

    def _made(self, rows: RowSpace, tile: Tile, by_pixel: bool) -> Array:
        return Expander.slices(self, rows, tile, by_pixel)

    def _are_of(self, rows: RowSpace) -> bool:
        own = self.space
        return (
            self.references is not None
            and own is not None
            and rows.poses is own.poses
            and (rows.n_models, rows.tile_rows) == (own.n_models, own.tile_rows)
        )
