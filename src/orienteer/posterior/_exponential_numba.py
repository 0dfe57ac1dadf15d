"""exp for float32 that compiles to vector instructions; the library function takes one number at a time."""

import numpy as np
from numba import njit

# No "nnan" and no "ninf": comparisons with rows that are -inf or not numbers must come out as written.
FAST = {"contract", "reassoc", "nsz", "arcp"}

_INVERSE_LN2 = np.float32(1.4426950408889634)
# ln 2 in two parts: n * _LN2_HIGH is exact for every n that occurs.
_LN2_HIGH = np.float32(0.693359375)
_LN2_LOW = np.float32(-2.12194440e-4)
_C6, _C5, _C4 = np.float32(1 / 720), np.float32(1 / 120), np.float32(1 / 24)
_C3, _C2, _C1 = np.float32(1 / 6), np.float32(1 / 2), np.float32(1)
_LOWEST = np.float32(-87)  # below, the result would not be a normal number; 0 is returned
_BIAS, _FRACTION_BITS = np.int32(127), np.int32(23)


@njit(nogil=True, cache=True, fastmath=FAST, inline="always")
def exponential(x):  # type: ignore[no-untyped-def]
    """exp(x) for float32 x <= 88, relative error below 5e-7; 0 for x below -87 and for NaN."""
    inside = x if x > _LOWEST else _LOWEST  # also takes out NaN
    n = np.rint(inside * _INVERSE_LN2)
    f = (inside - n * _LN2_HIGH) - n * _LN2_LOW
    series = ((((((_C6 * f + _C5) * f + _C4) * f + _C3) * f + _C2) * f) + _C1) * f + _C1
    power_of_two = np.int32((np.int32(n) + _BIAS) << _FRACTION_BITS).view(np.float32)
    return series * power_of_two if x > _LOWEST else np.float32(0)
