"""Operands, offsets and scores of a tile of slices: checks the arguments and picks the twin."""

from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from orienteer.compute.arrays import Array, array_namespace, is_on_gpu
from orienteer.compute.kernels import load_kernels
from orienteer.errors import OrienteerError
from orienteer.likelihood.panels import Panels, aligned_panels
from orienteer.likelihood.pixel_model import PixelModel
from orienteer.slicing.turned import TurnedVolume

Kind: TypeAlias = Literal["poisson", "negative_binomial", "gaussian"]
# "single": float32.  "half": one float16 term.  "split": two float16 terms, operand = high + low / 2048.
# "offset": each pixel's own share of the offset, float32.
Form: TypeAlias = Literal["single", "half", "split", "offset"]

LOW_TERM_SCALE = 2048.0
_KINDS = ("poisson", "negative_binomial", "gaussian")
_THREADS, _ROWS_PER_BLOCK, _PIXELS_PER_BLOCK, _PIXELS_PER_PART = 256, 4, 1024, 128


class SplitOperand(NamedTuple):
    """An operand as two float16 arrays: operand = high + low / 2048, 22 bits in all."""

    high: Array
    low: Array


def expand_slices(
    kind: Kind,
    slices: Array | TurnedVolume,
    pixels: PixelModel,
    centre: Array,
    dispersion: Array,
    fluence: float,
    by_pixel: bool,
    form: Form = "single",
) -> tuple[Array | SplitOperand | Panels, Array]:
    """What a likelihood multiplies the photon counts by, and what it adds per row.

    The formulas are at the head of ``expected.cu``.

    slices : (T, P) float32, or (P, T) when ``by_pixel``: the sampled model W.  A :class:`TurnedVolume` (CPU,
        by pixel, "single") is sliced on the way; the operand then comes in panels, and no slices are stored.
    centre : (S,) float32, subtracted from the operand at each of the S = n_scored pixels.
    dispersion : (S,) float32, 1/r of the negative binomial.
    fluence : fluence of all frames to be compared with; for the Gaussian the scale of the operand.

    Returns operand (T, S) or (S, T) in the chosen form, and offsets (T,) float64, both on the same device.
    On the GPU an operand by row is the first S columns of a wider array whose rows are aligned.
    """
    S, P = pixels.n_scored, pixels.n_pixels
    if isinstance(slices, TurnedVolume):
        return _sliced_panels(kind, slices, pixels, (centre, dispersion), fluence)
    if slices.ndim != 2 or slices.shape[0 if by_pixel else 1] != P or slices.dtype != np.float32:
        raise OrienteerError(
            f"slices are {slices.dtype} of shape {slices.shape}; expected float32 "
            f"{f'({P}, T)' if by_pixel else f'(T, {P})'}."
        )
    T = slices.shape[1 if by_pixel else 0]
    shape = (S, T) if by_pixel else (T, S)
    constants = (pixels.correction, pixels.floor, pixels.background_or_zero, centre, dispersion)
    if is_on_gpu(slices):
        return _on_gpu(kind, slices, (P, S, T), constants, fluence, by_pixel, form, shape)
    from orienteer.likelihood import _expected_numba as twin

    operand, offsets = np.empty(shape, np.float32), np.empty(T)
    kernels = twin.compiled_kernels(_KINDS.index(kind), form == "offset")
    scored = tuple(np.ascontiguousarray(array[:S], np.float32) for array in constants)
    kernels[int(by_pixel)](np.ascontiguousarray(slices), *scored, np.float32(fluence), operand, offsets)
    if form in ("single", "offset"):
        return operand, offsets
    return _float16_terms(operand, form == "split"), offsets


def _sliced_panels(
    kind: Kind, turned: TurnedVolume, pixels: PixelModel, own: tuple[Array, Array], fluence: float
) -> tuple[Panels, Array]:
    from numba import get_num_threads

    from orienteer.likelihood import _sliced_numba as twin
    from orienteer.slicing._trilinear_numba import scratch_memory

    S, T = pixels.n_scored, len(turned)
    key = (-1, S, T)  # -1: differs from all shapes of slices, the other keys
    turned.memory[key], panels = aligned_panels(turned.memory.get(key), S, T)
    offsets, signal = np.empty(T), np.empty(T)
    constants = (pixels.correction, pixels.floor, pixels.background_or_zero, *own)
    scored = tuple(np.ascontiguousarray(array[:S], np.float32) for array in constants)
    workers = get_num_threads()
    block = np.empty((workers, twin.ROWS, twin.PIXELS), np.float32)
    volume = np.ascontiguousarray(turned.volume, np.float32)
    twin.compiled_kernel(_KINDS.index(kind))(
        volume.reshape(-1), len(volume), turned.points.given, turned.matrices, *scored, np.float32(fluence),
        *scratch_memory(workers, twin.PIXELS), block, panels, offsets, signal,
    )  # fmt: skip
    return Panels(panels, T, signal), offsets


def linear_scores(
    product: Array,
    offsets: Array,
    factor: Array,
    out: Array,
    missing: Array | None = None,
    slopes: Array | None = None,
    steps: Array | None = None,
) -> Array:
    """``product[k, d] - factor[d] (offsets[k] - missing[k, d]) - slopes[k] steps[d]``, rounded once.

    product, missing, out : (T, D) float32.   offsets, slopes : (T,).   factor, steps : (D,).
    """
    xp = array_namespace(product)
    if slopes is None or steps is None:
        slopes, steps = xp.zeros_like(offsets), xp.zeros_like(factor)
    return _score("linear_scores", (product, offsets, factor, slopes, steps), missing, (), out)


def gaussian_scores(
    product: Array, offsets: Array, inverse_squares: Array, missing: Array | None, sigma: float, out: Array
) -> Array:
    """``-(offsets[k] - missing[k, d] - product[k, d]^2 inverse_squares[d]) / (2 sigma^2)``.

    A frame whose ``inverse_squares`` is 0 scores 0 for every row.
    """
    half_precision = np.float64(0.5 / sigma**2)
    return _score("gaussian_scores", (product, offsets, inverse_squares), missing, (half_precision,), out)


def gaussian_numerators(
    responsibilities: Array, scores: Array, offsets: Array, inverse_squares: Array, sigma: float
) -> Array:
    """``responsibilities ((offsets[k] + 2 sigma^2 scores[k, d]) inverse_squares[d])^1/2``, (T, D) float32."""
    out = array_namespace(scores).empty_like(scores)
    numbers = (np.float64(2 * sigma**2),)
    return _score("gaussian_numerators", (scores, offsets, inverse_squares), responsibilities, numbers, out)


def _score(
    name: str, arrays: tuple[Array, ...], missing: Array | None, numbers: tuple[Any, ...], out: Array
) -> Array:
    """Run a scoring kernel on (product, one value per row, one per frame, ...), missing, numbers and out."""
    product, *vectors = arrays
    T, D = product.shape
    shapes = [vector.shape for vector in vectors]
    if shapes != [(T,), (D,)] * (len(shapes) // 2) or out.shape != (T, D):
        raise OrienteerError(
            f"a product of shape {product.shape} does not fit rows and frames of {shapes} and an output of "
            f"shape {out.shape}."
        )
    if not is_on_gpu(product):
        from orienteer.likelihood import _expected_numba as twin

        none = np.empty((0, 0), np.float32)
        vectors = [np.ascontiguousarray(vector, np.float64) for vector in vectors]
        getattr(twin, name)(product, *vectors, none if missing is None else missing, *numbers, out)
        return out
    import cupy

    if not all(array.flags.c_contiguous for array in (product, out)):
        raise ValueError("scores on the GPU need contiguous arrays")
    if out.size:
        arguments = (
            product,
            *(cupy.ascontiguousarray(vector, cupy.float64) for vector in vectors),
            np.uintp(0) if missing is None else cupy.ascontiguousarray(missing, cupy.float32),
            *numbers,
            np.int32(T),
            np.int32(D),
            out,
        )
        blocks = ((D + _THREADS - 1) // _THREADS, min(T, 16384))
        _module().get_function(name)(blocks, (_THREADS,), arguments)
    return out


def _on_gpu(
    kind: Kind,
    slices: Array,
    sizes: tuple[int, int, int],
    constants: tuple[Array, ...],
    fluence: float,
    by_pixel: bool,
    form: Form,
    shape: tuple[int, int],
) -> tuple[Array | SplitOperand, Array]:
    import cupy

    from orienteer.likelihood.matrix_cuda import padded

    _, S, T = sizes
    # Aligned rows go to the tensor cores without a copy; photon lists need contiguous rows.
    stride = shape[1] if by_pixel else padded(shape[1])
    dtype = cupy.float32 if form in ("single", "offset") else cupy.float16
    high = cupy.empty((shape[0], stride), dtype)[:, : shape[1]]
    low = cupy.empty((shape[0], stride), dtype)[:, : shape[1]] if form == "split" else None
    pixels_per_part = _PIXELS_PER_PART if by_pixel else _PIXELS_PER_BLOCK
    n_parts = (S + pixels_per_part - 1) // pixels_per_part
    partial = cupy.empty((n_parts, T), cupy.float64)
    rows_per_block = _THREADS if by_pixel else _ROWS_PER_BLOCK
    if high.size:
        arguments = (
            cupy.ascontiguousarray(slices),
            *(np.int32(size) for size in (*sizes, stride)),
            *(cupy.ascontiguousarray(array, cupy.float32) for array in constants),
            np.float32(fluence),
            high,
            np.uintp(0) if low is None else low,
            partial,
        )
        kernel = _module().get_function(f"{form}_{kind}_{'pixels' if by_pixel else 'rows'}")
        kernel(((T + rows_per_block - 1) // rows_per_block, n_parts), (_THREADS,), arguments)
    operand = high if low is None else SplitOperand(high, low)
    return operand, partial.sum(axis=0)


def _float16_terms(operand: Array, two: bool) -> Array | SplitOperand:
    high = operand.astype(np.float16)
    if not two:
        return high
    return SplitOperand(high, ((operand - high.astype(np.float32)) * LOW_TERM_SCALE).astype(np.float16))


def _module() -> Any:
    return load_kernels(Path(__file__).with_name("expected.cu"))
