"""CPU twin of ``photons.cu``: random numbers that depend on (seed, shot, pixel), and photons drawn from them.

A count is decided only by +, -, *, /, sqrt, frexp and ldexp, each rounded once, so that both twins count the
same photons for the same means.
"""

import math

import numpy as np
from numba import njit, prange

_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_MULTIPLY_0, _MULTIPLY_1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL_0, _WEYL_1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_UNIT = 2.0**-32
_PIXELS_PER_TASK = 4096  # a multiple of 4: the pixels of one block of random words stay together


@njit(nogil=True, cache=True, inline="always")
def philox(c0, c1, c2, c3, k0, k1):  # type: ignore[no-untyped-def]
    """Four random 32-bit words of a counter and a key: Philox 4x32 with 10 rounds (Salmon et al. 2011)."""
    for _ in range(10):
        product_0 = _MULTIPLY_0 * c0
        product_1 = _MULTIPLY_1 * c2
        c0 = (product_1 >> _32) ^ c1 ^ k0
        c1 = product_1 & _LOW
        c2 = (product_0 >> _32) ^ c3 ^ k1
        c3 = product_0 & _LOW
        k0 = (k0 + _WEYL_0) & _LOW
        k1 = (k1 + _WEYL_1) & _LOW
    return c0, c1, c2, c3


@njit(nogil=True, cache=True)
def log_(x):  # type: ignore[no-untyped-def]
    """Natural logarithm by the series of artanh; bit for bit the same on every machine."""
    fraction, exponent = math.frexp(x)
    if fraction < 0.7071067811865476:
        fraction *= 2.0
        exponent -= 1
    s = (fraction - 1.0) / (fraction + 1.0)
    s2 = s * s
    series = 0.0
    for odd in range(21, 0, -2):
        series = series * s2 + 1.0 / odd
    return exponent * 0.6931471805599453 + 2.0 * s * series


@njit(nogil=True, cache=True)
def exp_of_minus(x):  # type: ignore[no-untyped-def]
    """exp(-x) for 0 <= x < 700; bit for bit the same on every machine."""
    n = math.floor(x * 1.4426950408889634 + 0.5)
    r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10
    series = 1.0
    for k in range(14, 0, -1):
        series = 1.0 - series * r / k
    return math.ldexp(series, -int(n))


@njit(nogil=True, cache=True)
def log_factorial(k):  # type: ignore[no-untyped-def]
    """ln k! by Stirling's series, evaluated at 12 or above, where it has converged."""
    x = k + 1.0
    product = 1.0
    while x < 12.0:
        product *= x
        x += 1.0
    y = 1.0 / (x * x)
    series = (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y / 1680.0))) / x
    return (x - 0.5) * log_(x) - x + 0.9189385332046727 + series - log_(product)


@njit(nogil=True, cache=True)
def invert_poisson(mean, word, pixel, e0, e1, k0, k1):  # type: ignore[no-untyped-def]
    """Photons for a mean below 10: the first count whose upper tail is below a 64-bit uniform number."""
    finer = philox(pixel, np.uint64(1), e0, e1, k0, k1)[0]
    uniform = (word + (finer + 0.5) * _UNIT) * _UNIT
    none = exp_of_minus(mean)
    if mean < 1e-3:
        tail = mean * (1.0 - mean / 2.0 * (1.0 - mean / 3.0 * (1.0 - mean / 4.0 * (1.0 - mean / 5.0))))
    else:
        tail = 1.0 - none
    probability = none
    photons = 0
    while uniform < tail and photons < 96:
        photons += 1
        probability *= mean / photons
        tail -= probability
    return photons


@njit(nogil=True, cache=True)
def reject_poisson(mean, pixel, e0, e1, k0, k1):  # type: ignore[no-untyped-def]
    """Photons for a mean of 10 or more by transformed rejection with squeeze (Hoermann 1993, PTRS)."""
    b = 0.931 + 2.53 * math.sqrt(mean)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    squeeze = 0.9277 - 3.6224 / (b - 2.0)
    log_mean = log_(mean)
    draw = np.uint64(1)
    while True:
        w0, w1, w2, w3 = philox(pixel, draw, e0, e1, k0, k1)
        draw += np.uint64(1)
        u = (w0 + (w1 + 0.5) * _UNIT) * _UNIT - 0.5
        v = (w2 + (w3 + 0.5) * _UNIT) * _UNIT
        to_edge = 0.5 - abs(u)
        if to_edge <= 0.0:
            continue
        k = math.floor((2.0 * a / to_edge + b) * u + mean + 0.43)
        if to_edge >= 0.07 and v <= squeeze:
            return int(k)
        if k < 0.0 or k > 2147483647.0 or (to_edge < 0.013 and v > to_edge):
            continue
        accept = log_(v * inverse_alpha / (a / (to_edge * to_edge) + b))
        if accept <= k * log_mean - mean - log_factorial(k):
            return int(k)


@njit(nogil=True, cache=True, parallel=True)
def draw_photons(expected, event_id, k0, k1, out, bad):  # type: ignore[no-untyped-def]
    N, P = out.shape
    tasks = (P + _PIXELS_PER_TASK - 1) // _PIXELS_PER_TASK
    for task in prange(N * tasks):
        d = task // tasks
        first = (task % tasks) * _PIXELS_PER_TASK
        e0, e1 = event_id[d] & _LOW, event_id[d] >> _32
        words = np.empty(4, np.uint64)
        for p in range(first, min(P, first + _PIXELS_PER_TASK)):
            if p % 4 == 0:
                words[0], words[1], words[2], words[3] = philox(
                    np.uint64(p // 4), np.uint64(0), e0, e1, k0, k1
                )
            mean = np.float64(expected[d, p])
            word = words[p % 4]
            # P(any photon) < mean, so a word of at least mean * 2^32 means no photon, without any function.
            if 0.0 <= mean <= np.float64(word) * _UNIT:
                out[d, p] = 0
            elif 0.0 <= mean < 10.0:
                out[d, p] = invert_poisson(mean, word, np.uint64(p), e0, e1, k0, k1)
            elif 10.0 <= mean <= 1e9:
                out[d, p] = reject_poisson(mean, np.uint64(p), e0, e1, k0, k1)
            else:
                out[d, p] = 0
                bad[d] = 1


@njit(nogil=True, cache=True, parallel=True)
def draw_normal(event_id, stream, k0, k1, out):  # type: ignore[no-untyped-def]
    N, P = out.shape
    for d in prange(N):
        e0, e1 = event_id[d] & _LOW, event_id[d] >> _32
        for group in range((P + 3) // 4):
            w0, w1, w2, w3 = philox(np.uint64(group), stream, e0, e1, k0, k1)
            for half in range(2):
                u, v = (w0, w1) if half == 0 else (w2, w3)
                radius = math.sqrt(-2.0 * math.log((u + 0.5) * _UNIT))
                angle = 6.283185307179586 * (v * _UNIT)
                p = 4 * group + 2 * half
                if p < P:
                    out[d, p] = radius * math.cos(angle)
                if p + 1 < P:
                    out[d, p + 1] = radius * math.sin(angle)


@njit(nogil=True, cache=True, parallel=True)
def count_lit(counts, lit):  # type: ignore[no-untyped-def]
    N, P = counts.shape
    for d in prange(N):
        n = 0
        for p in range(P):
            n += counts[d, p] != 0
        lit[d] = n


@njit(nogil=True, cache=True, parallel=True)
def list_lit(counts, start, pixel, count):  # type: ignore[no-untyped-def]
    N, P = counts.shape
    for d in prange(N):
        entry = start[d]
        for p in range(P):
            if counts[d, p] != 0:
                pixel[entry] = p
                count[entry] = counts[d, p]
                entry += 1
