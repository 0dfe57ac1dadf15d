"""Expansion: the slices of a tile of rows, made when they are needed."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from orienteer.compute.arrays import Array, array_namespace
from orienteer.compute.ranks.comm import SERIAL, Comm
from orienteer.reconstruction.orienting.rows import RowSpace, Tile
from orienteer.slicing.patches import PointPatches
from orienteer.slicing.trilinear import slice_volume
from orienteer.slicing.turned import TurnedVolume


@dataclass(eq=False)
class Expander:
    """Makes the slices of a tile: trilinear samples of a model, or the patterns of the junk classes.

    models : (M, n, n, n) float32; junk : (J, P) float32 or None; points : the pixel list in voxels.
    ratios : (M, P) float32 by which the slices of each model are multiplied; None: by 1.
    """

    models: Array
    points: PointPatches
    junk: Array | None = None
    ratios: Array | None = None
    _memory: dict[tuple[int, ...], Array] = field(default_factory=dict)
    _signal: dict[int, Array] = field(default_factory=dict)
    _offsets: dict[int, Array] = field(default_factory=dict)

    def tiles(self, rows: RowSpace) -> Sequence[Tile]:
        """All tiles, in the order in which their slices are ready soonest."""
        return list(rows.tiles())

    def turned(self, rows: RowSpace, tile: Tile) -> TurnedVolume | Array:
        """The slices of a tile of poses, yet to be made; or by pixel, if they were made before."""
        assert tile.model is not None
        matrices = rows.poses.matrices[tile.poses]
        return TurnedVolume(self.models[tile.model], self.points, matrices, self._memory)

    def note(self, tile: Tile, signal: Array, offsets: Array) -> None:
        """Keep for the merge: photons (T,) of each row at unit fluence on the scored pixels; offsets (T,)."""
        self._signal[tile.first], self._offsets[tile.first] = signal, offsets

    def offsets(self, tile: Tile) -> Array:
        """The offsets that the scores of each row of a tile were computed with, (T,) float64."""
        return self._offsets[tile.first]

    def largest_offset(self, comm: Comm = SERIAL) -> float | None:
        """The largest offset that was noted on any rank; None: there is none."""
        offsets = list(self._offsets.values())
        largest = float(array_namespace(*offsets).concatenate(offsets).max()) if offsets else -np.inf
        largest = comm.max(largest)
        return largest if np.isfinite(largest) else None

    def signal(self, tile: Tile) -> Array | None:
        """The photons that were noted for a tile; None: there are none."""
        return self._signal.get(tile.first)

    def slices(self, rows: RowSpace, tile: Tile, by_pixel: bool) -> Array:
        """Slices (T, P) or (P, T) float32 of a tile; the next tile reuses their memory."""
        if tile.model is None:
            assert self.junk is not None
            return array_namespace(self.junk).ascontiguousarray(self.junk.T) if by_pixel else self.junk
        n_rows, n_points = tile.last - tile.first, len(self.points)
        shape = (n_points, n_rows) if by_pixel else (n_rows, n_points)
        out = self._memory.get(shape)
        if out is None:
            out = self._memory[shape] = array_namespace(self.models).empty(shape, dtype=np.float32)
        return self.slices_of(tile.model, rows.poses.matrices[tile.poses], by_pixel, out)

    def slices_of(self, model: int, matrices: Array, by_pixel: bool, out: Array | None = None) -> Array:
        """Slices of a model for matrices (T, 3, 3): (T, P) or (P, T) float32."""
        slices = slice_volume(self.models[model], self.points, matrices, by_pixel=by_pixel, out=out)
        return self.brightened(model, slices, by_pixel)

    def brightened(self, model: int, slices: Array, by_pixel: bool) -> Array:
        """Slices of a model, multiplied in place by its ratios."""
        if self.ratios is not None:
            slices *= self.ratios[model][:, None] if by_pixel else self.ratios[model]
        return slices

    def of_model(self, model: int) -> "Expander":
        """An expander of one of the models, without junk."""
        own = slice(model, model + 1)
        return Expander(
            self.models[own], self.points, ratios=None if self.ratios is None else self.ratios[own]
        )
