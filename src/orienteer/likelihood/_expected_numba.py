"""CPU twin of ``expected.cu``: operand and offsets of a tile of slices, and scores from their products.

The logarithm is written out here so that the compiler can turn a loop of them into vector instructions.  Work
is cut into parts whose bounds depend on the shapes alone, so any number of threads gives the same bits.
"""

from functools import cache
from typing import Any

import numpy as np
from numba import njit, prange

POISSON, NEGATIVE_BINOMIAL, GAUSSIAN = 0, 1, 2

# Sums may be reordered by the compiler (once, when it compiles).  The logarithms are compiled apart and
# without "reassoc", which would cancel the terms that carry their last digits.
_FAST = {"contract", "reassoc", "nsz"}
_EXACT = {"contract"}
_PIXELS_PER_PART = 128

_HALF_ROOT_BITS = np.int32(0x3F3504F3)  # the float32 below sqrt(1/2)
_EXPONENT = np.int32(23)
_LN2_HIGH, _LN2_LOW = np.float32(0.693145751953125), np.float32(1.42860682030941723e-6)
# (ln(1 + f) - f + f^2 / 2) / f^3 for sqrt(1/2) <= 1 + f <= sqrt(2): minimax, relative error 6e-9.
_C7, _C6 = np.float32(-0.07634492963552475), np.float32(0.12761574983596802)
_C5, _C4 = np.float32(-0.13160182535648346), np.float32(0.14201758801937103)
_C3, _C2 = np.float32(-0.16623356938362122), np.float32(0.20001226663589478)
_C1, _C0 = np.float32(-0.2500081956386566), np.float32(0.3333333134651184)
_HALF, _ONE, _TINY = np.float32(0.5), np.float32(1), np.float32(1e-30)


@njit(nogil=True, cache=True, fastmath=_EXACT, error_model="numpy")
def log_(x):  # type: ignore[no-untyped-def]
    """Natural logarithm of a normal positive float32, relative error below 2e-7."""
    bits = np.float32(x).view(np.int32)
    exponent = np.int32(np.int32(bits - _HALF_ROOT_BITS) >> _EXPONENT)
    f = np.int32(bits - np.int32(exponent << _EXPONENT)).view(np.float32) - _ONE
    e = np.float32(exponent)
    s = f * f
    series = ((((((_C7 * f + _C6) * f + _C5) * f + _C4) * f + _C3) * f + _C2) * f + _C1) * f + _C0
    return (f - (_HALF * s - (series * (s * f) + e * _LN2_LOW))) + e * _LN2_HIGH


@njit(nogil=True, cache=True, fastmath=_EXACT, error_model="numpy")
def log1p_(y):  # type: ignore[no-untyped-def]
    """ln(1 + y) for y >= 0 in float32, relative error below 3e-7 down to the smallest y."""
    u = _ONE + y
    return log_(u) + (y - (u - _ONE)) / u  # the last term is what rounding took from 1 + y


@njit(nogil=True, cache=True, fastmath=_EXACT, error_model="numpy")
def terms(kind, slice_value, correction, floor, background, centre, dispersion, fluence):  # type: ignore[no-untyped-def]
    """(operand, offset) of one pixel of one row; callers pass the kind as a compile-time constant."""
    signal = slice_value * correction
    signal = signal if signal > floor else floor  # NaN also becomes the floor
    if kind == GAUSSIAN:
        return signal * fluence, signal * signal
    expected = fluence * signal + background
    operand = log_(expected) - centre
    if kind == POISSON:
        return operand, expected
    y = expected * dispersion
    y = y if y > _TINY else _TINY
    log_1p = log1p_(y)
    return operand - log_1p, expected * (log_1p / y)


@cache
def compiled_kernels(kind: int, offsets_only: bool) -> tuple[Any, Any]:
    """(by row, by pixel): the two layouts of the kernel for a kind of likelihood.

    offsets_only : write each pixel's share of the offset in place of the operand.
    """
    # Only plain numbers may be bound here: with a compiled function among them, Numba would not find the
    # kernels in its cache on disk again.
    KIND, OFFSETS_ONLY = kind, offsets_only

    @njit(nogil=True, parallel=True, cache=True, fastmath=_FAST)
    def by_row(slices, correction, floor, background, centre, dispersion, fluence, operand, offsets):  # type: ignore[no-untyped-def]
        T, P = operand.shape
        for k in prange(T):
            total = 0.0
            for p in range(P):
                value, offset = terms(
                    KIND,
                    slices[k, p],
                    correction[p],
                    floor[p],
                    background[p],
                    centre[p],
                    dispersion[p],
                    fluence,
                )
                operand[k, p] = offset if OFFSETS_ONLY else value
                total += np.float64(offset)
            offsets[k] = total

    @njit(nogil=True, parallel=True, cache=True, fastmath=_FAST)
    def by_pixel(slices, correction, floor, background, centre, dispersion, fluence, operand, offsets):  # type: ignore[no-untyped-def]
        P, T = operand.shape
        n_parts = (P + _PIXELS_PER_PART - 1) // _PIXELS_PER_PART
        partial = np.zeros((n_parts, T), np.float64)
        for part in prange(n_parts):
            total = partial[part]
            for p in range(part * _PIXELS_PER_PART, min(P, (part + 1) * _PIXELS_PER_PART)):
                c, f, b, m, e = correction[p], floor[p], background[p], centre[p], dispersion[p]
                for k in range(T):
                    value, offset = terms(KIND, slices[p, k], c, f, b, m, e, fluence)
                    operand[p, k] = offset if OFFSETS_ONLY else value
                    total[k] += np.float64(offset)
        for k in range(T):
            offsets[k] = 0.0
        for part in range(n_parts):
            for k in range(T):
                offsets[k] += partial[part, k]

    return by_row, by_pixel


@njit(nogil=True, parallel=True, cache=True, fastmath=_FAST)
def linear_scores(product, offsets, factor, slopes, steps, missing, out):  # type: ignore[no-untyped-def]
    """out[k, d] = product[k, d] - factor[d] * (offsets[k] - missing[k, d]) - slopes[k] * steps[d].

    missing may be (0, 0).
    """
    T, D = out.shape
    some_missing = missing.shape[0] > 0
    for k in prange(T):
        offset, slope = offsets[k], slopes[k]
        if some_missing:
            for d in range(D):
                out[k, d] = product[k, d] - factor[d] * (offset - missing[k, d]) - slope * steps[d]
        else:
            for d in range(D):
                out[k, d] = product[k, d] - factor[d] * offset - slope * steps[d]


@njit(nogil=True, parallel=True, cache=True, fastmath=_FAST)
def gaussian_scores(product, offsets, inverse_squares, missing, half_precision, out):  # type: ignore[no-untyped-def]
    """out[k, d] = -half_precision * (offsets[k] - missing[k, d] - product[k, d]^2 * inverse_squares[d]).

    A frame with inverse_squares 0 scores 0 for every row.
    """
    T, D = out.shape
    some_missing = missing.shape[0] > 0
    for k in prange(T):
        offset = offsets[k]
        for d in range(D):
            projected = np.float64(product[k, d])
            norm = offset - missing[k, d] if some_missing else offset
            residual = norm - projected * projected * inverse_squares[d]
            out[k, d] = -half_precision * residual if inverse_squares[d] > 0 else 0.0


@njit(nogil=True, parallel=True, cache=True, fastmath=_FAST)
def gaussian_numerators(scores, offsets, inverse_squares, p, factor, out):  # type: ignore[no-untyped-def]
    """out[k, d] = p[k, d] * sqrt((offsets[k] + factor * scores[k, d]) * inverse_squares[d])."""
    T, D = out.shape
    for k in prange(T):
        offset = offsets[k]
        for d in range(D):
            square = max(offset + factor * scores[k, d], 0.0)
            out[k, d] = p[k, d] * np.sqrt(square * inverse_squares[d]) if p[k, d] > 0 else 0.0
