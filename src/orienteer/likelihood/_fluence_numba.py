"""CPU twin of the fluence solver: frame by frame, over lit pixels only."""

import numpy as np
from numba import njit, prange


@njit(nogil=True, parallel=True, cache=True, error_model="numpy")
def solve_fluence(counts, signal, background, tolerance, n_steps, out):  # type: ignore[no-untyped-def]
    """Newton steps from the left for sum_p s (K / (phi s + b) - 1) = 0 in each frame."""
    D, S = counts.shape
    for d in prange(D):
        K, s, b = np.empty(S), np.empty(S), np.empty(S)
        total = bare = 0.0
        lit = 0
        for p in range(S):
            value = max(np.float64(signal[d, p]), 0.0)
            total += value
            count = np.float64(counts[d, p])
            if count > 0 and value > 0:
                K[lit], s[lit], b[lit] = count, value, background[p]
                bare += count if background[p] <= 0 else 0.0
                lit += 1
        phi = bare / total if total > 0 else 0.0
        for _ in range(n_steps):
            slope, excess = 0.0, -total
            for i in range(lit):
                ratio = s[i] / (phi * s[i] + b[i])
                excess += K[i] * ratio
                slope += K[i] * ratio * ratio
            new = max(phi + excess / slope, 0.0) if slope > 0 else phi
            done = abs(new - phi) <= tolerance * new
            phi = new
            if done:
                break
        out[d] = phi
