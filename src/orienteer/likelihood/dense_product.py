"""Products over all pixels: BLAS on the CPU, tensor cores in a stated precision on the GPU."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from orienteer.compute.arrays import Array, array_namespace
from orienteer.errors import OrienteerError
from orienteer.likelihood.expected import Form
from orienteer.likelihood.frames import FrameBatch
from orienteer.likelihood.matrix_cuda import LOW_SCALE, aligned_rows, half_terms, multiply
from orienteer.likelihood.photon_lists import Blocks, PhotonLists, launch
from orienteer.likelihood.reading_frames import LARGEST_HALF_COUNT

Precision: TypeAlias = Literal["half", "split", "two-term", "tf32", "single"]
Terms: TypeAlias = list[tuple[Array, float]]

# Counts converted at a time, on the CPU (False) and on the GPU (True).  Up to _KEPT counts on the CPU and
# _CHUNK[True] on the GPU, all are converted once and kept.
_CHUNK = {False: 1 << 24, True: 1 << 29}
_KEPT = 1 << 26
# Pixels added in float32 before the sum goes on in float64.
_PIXELS_PER_SUM = 2048
# On the GPU, pixels of batches with brighter frames than this are summed in shorter parts, because tensor
# cores truncate their sums instead of rounding them.
_BRIGHT, _PIXELS_PER_BRIGHT_SUM = 2e4, 512
_PAIR_SLICES = 4
_COUNT_KINDS = {"uint8": 0, "uint16": 1, "float16": 2, "float32": 3}


class DenseProduct:
    """The contract of :class:`orienteer.likelihood.product.Product` as matrix products.

    Operands are (T, n_scored or more) float32, merges (T, P).

    precision : format of the numbers that enter the tensor cores of the GPU; sums and results are float32.
        "half": the operand as one float16 term (relative error 5e-4); "split": as two float16 terms (2e-7),
        or one where a measurement shows that one is enough; "two-term": always as two, so that the result
        does not depend on a measurement; "tf32": as one TF32 term (1e-3, truncated, not rounded); "single":
        float32, without tensor cores.  Whole counts are exact in all of them: above 2048 they take a second
        term, from 2^22 on single precision.  Signal that is not whole takes two terms.  The weights of a
        merge always take one term: their rounding errors are random and average out.  Tensor cores are
        fastest when P and n_scored are multiples of 8.
        On the CPU everything is float32; unlike lists of photons, BLAS may round differently with another
        number of threads.
    """

    by_pixel = False

    def __init__(self, frames: FrameBatch, precision: Precision = "split") -> None:
        if frames.dense is None:
            raise OrienteerError("a dense product needs dense frames.", "Use a SparseProduct.")
        if precision not in get_args(Precision):
            raise OrienteerError(f"precision '{precision}' is not one of {', '.join(get_args(Precision))}.")
        self.frames = frames
        self.precision: Precision = precision

    @property
    def operand_form(self) -> Form:
        """The form in which operands go to the tensor cores without conversion."""
        if not self.frames.is_on_gpu or self._single or self.precision == "tf32":
            return "single"
        return "half" if self.precision == "half" else "split"

    @property
    def may_take_one_term(self) -> bool:
        """Whether an operand may have one float16 term only, if that is accurate enough."""
        return self.precision == "split" and self.operand_form == "split"

    def scores(self, operand: Array, out: Array | None = None) -> Array:
        """(T, D) float32: sum over the scored pixels p of operand[k, p] * K[d, p].

        On the GPU the operand may also be float16: one array (T, n_scored) for precision "half", or a pair
        (high, low) of them for "split", which stands for high + low / 2048.  Their rows should begin at
        multiples of 8 numbers.
        """
        n = self.frames.n_scored
        terms = self._operand_terms(operand, n)
        first = terms[0][0]
        xp = array_namespace(first)
        out = xp.empty((len(first), len(self.frames)), dtype=np.float32) if out is None else out
        for chunk, counts in self._counts():
            if not self.frames.is_on_gpu:
                _sum_in_parts(first[:, :n], counts[0][0][:, :n], out[:, chunk])
                continue
            add = False
            for part in self._pixel_parts:
                for x, x_factor in terms:
                    for k, k_factor in counts:
                        if x_factor * k_factor >= self._negligible * terms[0][1] * counts[0][1]:
                            self._multiply(
                                x[:, part], k[:, part], out[:, chunk], True, x_factor * k_factor, add
                            )
                            add = True
        return out

    def merge(self, weights: Array, out: Array | None = None, *, largest: float | None = None) -> Array:
        """(T, P) float32: sum over the frames d of weights[k, d] * K[d, p]; weights are (T, D).

        largest : upper bound of the weights; None: it is searched for, which waits for the GPU.
        """
        xp = array_namespace(weights)
        if weights.ndim != 2 or weights.shape[1] != len(self.frames):
            raise OrienteerError(f"weights of shape {weights.shape} do not fit {len(self.frames)} frames.")
        weights = weights.astype(np.float32, copy=False)
        out = xp.empty((len(weights), self.frames.n_pixels), dtype=np.float32) if out is None else out
        if len(self.frames) == 0:
            out[...] = 0
        terms = self._terms(weights, 1, largest) if self.frames.is_on_gpu else [(weights, 1.0)]
        return self._merge_terms(terms, out)

    def merge_halves(self, weights: Array, factor: float) -> Array:
        """The merge of ``factor`` times weights (T, D) float16 whose rows are aligned, on the GPU."""
        shape = len(weights), self.frames.n_pixels
        return self._merge_terms([(weights, factor)], array_namespace(weights).empty(shape, dtype=np.float32))

    def _merge_terms(self, terms: Terms, out: Array) -> Array:
        add = False
        for chunk, counts in self._counts():
            for w, w_factor in terms:
                for k, k_factor in counts:
                    if self.frames.is_on_gpu:
                        self._multiply(w[:, chunk], k, out, False, w_factor * k_factor, add)
                    elif add:
                        out += w[:, chunk] @ k
                    else:
                        np.matmul(w[:, chunk], k, out=out)
                    add = True
        return out

    def missing_scores(self, operand: Array) -> Array:
        """(T, D) float32: sum of operand[k, p] over the scored pixels p that frame d forbids."""
        if self._missing is None:
            return array_namespace(operand).zeros((len(operand), len(self.frames)), dtype=np.float32)
        return self._missing.scores(operand.T)

    def missing_merge(self, weights: Array) -> Array:
        """(T, P) float32: sum of weights[k, d] over the frames d that forbid pixel p."""
        xp = array_namespace(weights)
        if self._missing is None:
            return xp.zeros((len(weights), self.frames.n_pixels), dtype=np.float32)
        return xp.ascontiguousarray(self._missing.merge(weights).T)

    def fill_listed_scores(self, operand: Array, blocks: Blocks, values: Array) -> None:
        """See :func:`orienteer.likelihood.listed.listed_scores`."""
        operand = array_namespace(operand).ascontiguousarray(operand, dtype=np.float32)
        n = self.frames.n_scored
        if operand.shape[1] < n:
            raise OrienteerError(f"an operand of shape {operand.shape} does not hold {n} scored pixels.")
        if self.frames.is_on_gpu:
            sizes = np.int64(operand.shape[1]), np.int32(n)
            arguments = (operand, *sizes, *blocks, np.int32(_PAIR_SLICES), values)
            self._launch_listed("dense_listed_scores", (len(blocks[0]) - 1) * _PAIR_SLICES, arguments)
            return
        for rows, pairs, part in _each_block(blocks):
            counts = self.frames.dense[pairs, :n].astype(np.float32, copy=False)  # type: ignore[index]
            block = values[part].reshape(len(counts), -1)
            _sum_in_parts(counts, operand[rows, :n], block)

    def add_listed_merge(self, values: Array, blocks: Blocks, out: Array) -> None:
        """See :func:`orienteer.likelihood.listed.listed_merge`."""
        if self.frames.is_on_gpu:
            tiles = -(-self.frames.n_pixels // 256)
            arguments = (values, *blocks, np.int32(self.frames.n_pixels), np.int32(tiles), out)
            self._launch_listed("dense_listed_merge", (len(blocks[0]) - 1) * tiles, arguments)
            return
        for rows, pairs, part in _each_block(blocks):
            counts = self.frames.dense[pairs].astype(np.float32, copy=False)  # type: ignore[index]
            out[rows] = values[part].reshape(len(counts), -1).T @ counts

    @cached_property
    def _missing(self) -> PhotonLists | None:
        missing = self.frames.missing
        return None if missing is None else PhotonLists(missing, self.frames.n_scored)

    @cached_property
    def _largest(self) -> float:
        """The largest count; infinite if the frames hold numbers that are not whole."""
        dense: Any = self.frames.dense
        xp = array_namespace(dense)
        if dense.size == 0:
            return 0.0
        if dense.dtype.kind == "u":
            return float(dense.max())
        step = max(1, _CHUNK[False] // dense.shape[1])
        parts = [dense[i : i + step] for i in range(0, len(dense), step)]
        whole = all(bool((part == xp.rint(part)).all()) for part in parts)
        return max(float(abs(part).max()) for part in parts) if whole else np.inf

    @cached_property
    def _single(self) -> bool:
        """Whether the counts need float32 without tensor cores: "single", or whole numbers from 2^22."""
        return self.precision == "single" or LARGEST_HALF_COUNT**2 <= self._largest < np.inf

    @property
    def _negligible(self) -> float:
        """A product of terms this much smaller than the first is left out: a low term times a low term."""
        return 1 / LOW_SCALE**2 * 1.5 if self._largest == np.inf else 0.0

    def _operand_terms(self, operand: Array, n: int) -> Terms:
        if isinstance(operand, tuple):
            high, low = operand
            if self._single or self.precision == "tf32" or not self.frames.is_on_gpu:
                return self._operand_terms(high.astype(np.float32) + low.astype(np.float32) / LOW_SCALE, n)
            terms = [(high, 1.0)] if self.precision == "half" else [(high, 1.0), (low, 1 / LOW_SCALE)]
        elif self.frames.is_on_gpu and operand.dtype == np.float16:
            terms = [(operand, 1.0)]
        elif self.frames.is_on_gpu:
            terms = self._terms(operand[:, :n], 1 if self.precision == "half" else 2)
        else:
            terms = [(operand.astype(np.float32, copy=False), 1.0)]
        if terms[0][0].ndim != 2 or terms[0][0].shape[1] < n:
            raise OrienteerError(f"an operand of shape {terms[0][0].shape} does not hold {n} scored pixels.")
        return terms

    def _terms(self, values: Array, n_terms: int, largest: float | None = None) -> Terms:
        if self._single or self.precision == "tf32":
            return [(aligned_rows(values.astype(np.float32, copy=False)), 1.0)]
        return half_terms(values, n_terms, largest)

    def _multiply(self, a: Array, b: Array, out: Array, transposed: bool, factor: float, add: bool) -> None:
        tf32 = self.precision == "tf32" and not self._single
        multiply(a, b, out, b_transposed=transposed, factor=factor, add=add, tf32=tf32)

    @cached_property
    def _pixel_parts(self) -> list[slice]:
        """Ranges of scored pixels short enough to be summed by the tensor cores, which round towards zero."""
        n = self.frames.n_scored
        photons = float(abs(self.frames.scored_photons).max()) if len(self.frames) else 0.0
        step = _PIXELS_PER_BRIGHT_SUM if photons > _BRIGHT else max(n, 1)
        return [slice(p, min(p + step, n)) for p in range(0, max(n, 1), step)]

    def _counts(self) -> Iterator[tuple[slice, Terms]]:
        """Ranges of frames, with their counts as the arrays and factors that the product needs."""
        if self._ready is not None:
            yield slice(0, len(self.frames)), self._ready
            return
        step = max(1, _CHUNK[self.frames.is_on_gpu] // self.frames.n_pixels)
        for first in range(0, len(self.frames), step):
            chunk = slice(first, min(first + step, len(self.frames)))
            yield chunk, self._count_terms(self.frames.dense[chunk])  # type: ignore[index]

    @cached_property
    def _ready(self) -> Terms | None:
        """All counts in the form of the product, if stored in it or few enough to keep; otherwise None."""
        dense: Any = self.frames.dense
        if dense.size == 0:
            return None
        on_gpu = self.frames.is_on_gpu
        as_stored = dense.dtype == (np.float16 if on_gpu and not self._single else np.float32)
        if dense.size <= (_CHUNK[True] if on_gpu else _KEPT) or (as_stored and not on_gpu):
            return self._count_terms(dense)
        return None

    def _count_terms(self, dense: Array) -> Terms:
        """The counts as arrays with factors, whose weighted sum they are; see ``precision``."""
        if not self.frames.is_on_gpu:
            return [(dense.astype(np.float32, copy=False), 1.0)]
        if self._single:
            return [(aligned_rows(dense.astype(np.float32, copy=False)), 1.0)]
        kind = np.float32 if self.precision == "tf32" else np.float16
        if self._largest <= LARGEST_HALF_COUNT:
            return [(aligned_rows(dense.astype(kind, copy=False)), 1.0)]
        if self._largest == np.inf:
            return [(aligned_rows(t.astype(kind, copy=False)), factor) for t, factor in half_terms(dense, 2)]
        xp = array_namespace(dense)
        many = xp.floor(dense.astype(np.float32) / LARGEST_HALF_COUNT)
        few = dense.astype(np.float32) - many * LARGEST_HALF_COUNT
        both = (few, 1.0), (many, float(LARGEST_HALF_COUNT))
        return [(aligned_rows(term.astype(kind)), factor) for term, factor in both]

    def _launch_listed(self, name: str, n_blocks: int, arguments: tuple[Any, ...]) -> None:
        dense: Any = self.frames.dense
        kind = _COUNT_KINDS[dense.dtype.name]
        stride = np.int64(max(dense.strides[0] // dense.itemsize, 1))
        launch(name, n_blocks, (dense, stride, *arguments), (f"-DCOUNT_KIND={kind}",))


def _sum_in_parts(a: Array, b: Array, out: Array) -> None:
    """out = a @ b.T with parts of the pixels added in float64: (M, P) and (N, P) float32 to (M, N)."""
    n = a.shape[1]
    if n <= _PIXELS_PER_SUM:
        out[...] = a @ b.T
        return
    total = np.zeros(out.shape, dtype=np.float64)
    for p in range(0, n, _PIXELS_PER_SUM):
        total += a[:, p : p + _PIXELS_PER_SUM] @ b[:, p : p + _PIXELS_PER_SUM].T
    out[...] = total


def _each_block(blocks: Blocks) -> Iterator[tuple[slice, Array, slice]]:
    """Rows, frames and values of every block that has pairs and rows."""
    block_start, pair_start, value_start, frame = blocks
    for b in range(len(block_start) - 1):
        part = slice(int(value_start[b]), int(value_start[b + 1]))
        if part.stop > part.start:
            rows = slice(int(block_start[b]), int(block_start[b + 1]))
            yield rows, frame[int(pair_start[b]) : int(pair_start[b + 1])], part
