"""Fit spheres to radial profiles, frame by frame."""

import math

import numpy as np
from numba import njit, prange

_STEPS = 12


@njit(nogil=True, cache=True)
def _fit(K, s, b, precision, f, g):  # type: ignore[no-untyped-def]
    """Largest ln P over signal f >= 0 and background factor g > 0 by Newton steps; (ln P, f, g).

    ln P = Σ_r [K_r ln(f s_r + g b_r) - f s_r - g b_r] - precision (g - 1)² / 2, which has one maximum.
    """
    G = len(K)
    for _ in range(_STEPS):
        f_slope, g_slope = 0.0, -precision * (g - 1)
        ff, fg, gg = 1e-12, 0.0, precision + 1e-12
        for r in range(G):
            expected = f * s[r] + g * b[r] + 1e-9
            ratio = K[r] / expected
            f_slope += s[r] * (ratio - 1)
            g_slope += b[r] * (ratio - 1)
            curve = ratio / expected
            ff += s[r] * s[r] * curve
            fg += s[r] * b[r] * curve
            gg += b[r] * b[r] * curve
        determinant = ff * gg - fg * fg
        if determinant > 1e-12 * ff * gg:
            f_step = (gg * f_slope - fg * g_slope) / determinant
            g_step = (ff * g_slope - fg * f_slope) / determinant
        else:
            f_step, g_step = f_slope / ff, 0.0
        # A step reduces a value by nine tenths at most, so that both stay positive.
        new_f, new_g = max(f + f_step, 0.1 * f), max(g + g_step, 0.1 * g)
        done = abs(new_f - f) <= 1e-4 * f and abs(new_g - g) <= 1e-4
        f, g = new_f, new_g
        if done:
            break
    total = -0.5 * precision * (g - 1) ** 2
    for r in range(G):
        expected = f * s[r] + g * b[r] + 1e-9
        total += (K[r] * math.log(expected) if K[r] > 0 else 0.0) - expected
    return total, f, g


@njit(nogil=True, parallel=True, cache=True)
def fit_spheres(photons, profiles, background, precision, ln_p, signal, factor):  # type: ignore[no-untyped-def]
    """ln P, signal photons and background factor, each (N, S), of every frame for every size.

    photons : (N, G);  profiles : (S, G);  background : (G,)
    """
    N, S = ln_p.shape
    for d in prange(N):
        K = photons[d].astype(np.float64)
        for r in range(len(K)):
            K[r] = max(K[r], 0.0)
        f, g = max(K.sum() - background.sum(), 0.1 * K.sum() + 1.0), 1.0
        for i in range(S):
            ln_p[d, i], f, g = _fit(K, profiles[i], background, precision, max(f, 1.0), g)
            signal[d, i], factor[d, i] = f, g
