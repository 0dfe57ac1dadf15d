"""Products of lists of photons with tiles of rows: checks the arguments and picks the twin."""

from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from orienteer.compute.arrays import Array, array_namespace, import_cupy, is_on_gpu
from orienteer.compute.kernels import load_kernels
from orienteer.errors import OrienteerError
from orienteer.likelihood.frames import scored_stop
from orienteer.likelihood.panels import NARROW, Panels, aligned_panels
from orienteer.likelihood.reading_frames import first_of_each
from orienteer.source.sparse_photons import SparsePhotons, repeat_each

# Block starts, pair starts, value starts (B + 1,) and frames of pairs, as in likelihood/listed.py.
Blocks: TypeAlias = tuple[Array, Array, Array, Array]
# If a smaller share of the frames has weight in a panel, frames are visited one by one, and those without
# weight are skipped.
_FEW = 0.25
_TILE, _LISTS_PER_BLOCK, _THREADS = 32, 64, 256  # as in product.cu


class PhotonLists:
    """Lists of lit pixels as one factor of a product; the other has its rows side by side, (pixels, rows).

    Both factors enter as float32: a count above 2^24 is rounded to the nearest one (relative error 6e-8).
    """

    def __init__(self, photons: SparsePhotons, n_scored: int) -> None:
        self.photons = photons
        self.n_scored = n_scored
        self.scored_stop = scored_stop(photons, n_scored)
        self._scratch: dict[str, Array] = {}

    def scores(self, operand: Array | Panels, out: Array | None = None) -> Array:
        """(T, D) float32: sum over the scored pixels p of operand[p, k] * K[d, p].

        operand : (n_scored or more, T) float32; on the CPU also as panels.
        """
        if isinstance(operand, Panels):
            if out is None:
                out = np.empty((operand.n_rows, len(self.photons)), dtype=np.float32)
            if out.size:
                self._scores_of_panels(operand.array, out)
            return out
        operand = self.checked(operand)
        xp = array_namespace(operand)
        n_rows = operand.shape[1]
        out = xp.empty((n_rows, len(self.photons)), dtype=np.float32) if out is None else out
        start, index, count = self.photons.start[:-1], self.photons.pixel, self.photons.count
        if out.size == 0:
            return out
        if is_on_gpu(operand):
            _gather_rows(operand, start, self.scored_stop, index, count, n_rows, False, out)
        else:
            from orienteer.likelihood import _product_numba as twin

            panels = self._panels("operand", len(operand), n_rows)
            twin.pack(operand, panels)
            self._scores_of_panels(panels, out)
        return out

    def _scores_of_panels(self, panels: Array, out: Array) -> None:
        from orienteer.likelihood import _product_numba as twin

        start, index, count = self.photons.start[:-1], self.photons.pixel, self.photons.count
        twin.compiled_kernels(panels.shape[2])[0](panels, start, self.scored_stop, index, count, out)

    def merge(self, weights: Array, out: Array | None = None) -> Array:
        """(P, T) float32: sum over the frames d of weights[k, d] * K[d, p], for all P pixels.

        weights : (T, D) float32.
        """
        xp = array_namespace(weights)
        if weights.ndim != 2 or weights.shape[1] != len(self.photons):
            raise OrienteerError(f"weights of shape {weights.shape} do not fit {len(self.photons)} frames.")
        weights = xp.ascontiguousarray(weights, dtype=np.float32)
        n_rows, n_frames = weights.shape
        shape = (self.photons.n_pixels, n_rows)
        out = xp.empty(shape, dtype=np.float32) if out is None else out
        if out.size == 0:
            return out
        if is_on_gpu(weights):
            table, start = xp.ascontiguousarray(weights.T), self._by_pixel.start
            index, count = self._by_pixel.pixel, self._by_pixel.count
            _gather_rows(table, start[:-1], start[1:], index, count, n_rows, True, out)
        else:
            from orienteer.likelihood import _product_numba as twin

            panels = self._panels("weights", n_frames, n_rows)
            active = np.empty(panels.shape[:2], dtype=np.bool_)
            twin.pack_transposed(weights, panels, active)
            _, merge_few, merge = twin.compiled_kernels(panels.shape[2])
            if active.mean() < _FEW:
                merge_few(panels, active, self._part_bounds, self.photons.pixel, self.photons.count, out)
            else:
                merge(panels, self._by_pixel.start, self._by_pixel.pixel, self._by_pixel.count, out)
        return out

    def listed_scores(self, operand: Array | Panels, blocks: Blocks, values: Array) -> None:
        """Scores of listed pairs; ``blocks`` as in :mod:`orienteer.likelihood.listed`."""
        block_start, pair_start, value_start, frame = blocks
        lists = self.photons.start[:-1], self.scored_stop, self.photons.pixel, self.photons.count
        operand = operand if isinstance(operand, Panels) else self.checked(operand)
        if not isinstance(operand, Panels) and is_on_gpu(operand):
            xp = array_namespace(operand)
            # The block of every pair.  The number of pairs is known, so nothing waits for the GPU.
            pair_block = xp.searchsorted(pair_start[1:], xp.arange(len(frame)), side="right")
            stride = np.int32(operand.shape[1])
            kernel_blocks = block_start, pair_start, value_start, pair_block, frame
            arguments = (operand, stride, *kernel_blocks, *lists, np.int64(len(frame)), values)
            launch("listed_scores", (len(frame) + 7) // 8, arguments)
        else:
            from orienteer.likelihood import _product_numba as twin

            if isinstance(operand, Panels):
                panels = operand.array
            elif operand.shape[1] < NARROW:
                panels = np.pad(operand, ((0, 0), (0, NARROW - operand.shape[1])))[None]
            else:
                panels = operand[None]
            twin.listed_scores(panels, *blocks, *lists, values)

    def listed_merge(self, values: Array, blocks: Blocks, out: Array) -> None:
        """Merge of listed pairs into ``out`` (P, T), which must be zero."""
        lists = self.photons.start, self.photons.pixel, self.photons.count
        if is_on_gpu(values):
            arguments = (values, *blocks, *lists, np.int32(out.shape[1]), out)
            launch("listed_merge", len(blocks[0]) - 1, arguments)
        else:
            from orienteer.likelihood import _product_numba as twin

            twin.listed_merge(values, *blocks, *lists, out)

    def checked(self, operand: Array) -> Array:
        """The operand as contiguous float32 with a row for every scored pixel."""
        if operand.ndim != 2 or len(operand) < self.n_scored:
            raise OrienteerError(
                f"an operand of shape {operand.shape} does not hold {self.n_scored} scored pixels as rows."
            )
        return array_namespace(operand).ascontiguousarray(operand, dtype=np.float32)

    @cached_property
    def _part_bounds(self) -> Array:
        from orienteer.likelihood import _product_numba as twin

        parts = -(-self.photons.n_pixels // twin.PIXELS_PER_PART)
        bounds = np.empty((len(self.photons), parts + 1), dtype=np.int64)
        twin.part_bounds(self.photons.start, self.photons.pixel, bounds)
        return bounds

    @cached_property
    def _by_pixel(self) -> SparsePhotons:
        """The same entries as one list of frames for every pixel."""
        photons = self.photons
        xp = array_namespace(photons.start)
        frame = repeat_each(xp.arange(len(photons), dtype=np.int32), photons.start[1:] - photons.start[:-1])
        order = xp.argsort(photons.pixel, stable=True)
        start = first_of_each(photons.pixel[order], photons.n_pixels)
        return SparsePhotons(start, frame[order], photons.count[order], len(photons))

    def _panels(self, name: str, n: int, n_rows: int) -> Array:
        """Memory for (panels, n, width) float32, kept from call to call."""
        self._scratch[name], panels = aligned_panels(self._scratch.get(name), n, n_rows)
        return panels


def launch(name: str, n_blocks: int, arguments: tuple[Any, ...], options: tuple[str, ...] = ()) -> None:
    """Run a kernel of product.cu on ``n_blocks`` blocks of threads."""
    module = load_kernels(Path(__file__).with_name("product.cu"), options)
    if n_blocks:
        module.get_function(name)((n_blocks,), (_THREADS,), arguments)


def _gather_rows(
    table: Array,
    start: Array,
    stop: Array,
    index: Array,
    count: Array,
    n_rows: int,
    by_list: bool,
    out: Array,
) -> None:
    """out[list, row] (by_list) or out[row, list] = sum over the list of count * table[index, row]."""
    if n_rows % 4:  # rows are read four at a time
        padded = import_cupy().zeros((len(table), -(-n_rows // 4) * 4), dtype=np.float32)  # type: ignore[union-attr]
        padded[:, :n_rows] = table
        table = padded
    tiles, groups = -(-n_rows // _TILE), -(-len(start) // _LISTS_PER_BLOCK)
    sizes = np.int32(len(start)), np.int32(n_rows), np.int32(tiles), np.int32(by_list)
    arguments = (table, np.int32(table.shape[1]), start, stop, index, count, *sizes, out)
    launch("gather_rows", tiles * groups, arguments)
