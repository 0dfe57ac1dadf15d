"""CPU kernels of the sums over atoms (loop letters: p point, j atom, t kind, g Gaussian)."""

import numpy as np
from numba import njit, prange

_BLOCK = 512  # atoms whose strengths are prepared together; small enough to stay in the first-level cache

# Taylor coefficients of sin and cos in turns, t = angle / 2π: on |t| ≤ 1/8 the terms left out are < 1e-17.
_SIN = [(-1) ** k * (2 * np.pi) ** (2 * k + 1) for k in range(9)]
_COS = [(-1) ** k * (2 * np.pi) ** (2 * k) for k in range(9)]
_FACTORIAL = [1.0]
for _k in range(1, 18):
    _FACTORIAL.append(_FACTORIAL[-1] * _k)
S0, S1, S2, S3, S4, S5, S6, S7 = (_SIN[k] / _FACTORIAL[2 * k + 1] for k in range(8))
C0, C1, C2, C3, C4, C5, C6, C7, C8 = (_COS[k] / _FACTORIAL[2 * k] for k in range(9))


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _sum_block(qx, qy, qz, x, y, z, strength_re, strength_im):  # type: ignore[no-untyped-def]
    """Σ_j strength_j exp(2πi q·r_j); polynomials for sine and cosine let the compiler vectorise the loop."""
    re = 0.0
    im = 0.0
    for j in range(x.shape[0]):
        turns = qx * x[j] + qy * y[j] + qz * z[j]
        quarter = np.rint(4.0 * turns)
        t = turns - 0.25 * quarter
        u = t * t
        sine = t * (S0 + u * (S1 + u * (S2 + u * (S3 + u * (S4 + u * (S5 + u * (S6 + u * S7)))))))
        cosine = C0 + u * (C1 + u * (C2 + u * (C3 + u * (C4 + u * (C5 + u * (C6 + u * (C7 + u * C8)))))))
        # Turn by whole quarters: quarter mod 4 as 0, 1, 2 or 3.
        turn = quarter - 4.0 * np.floor(0.25 * quarter)
        is_odd = turn == 1.0 or turn == 3.0
        c = sine if is_odd else cosine
        s = cosine if is_odd else sine
        c = -c if (turn == 1.0 or turn == 2.0) else c
        s = -s if turn >= 2.0 else s
        re += strength_re[j] * c - strength_im[j] * s
        im += strength_re[j] * s + strength_im[j] * c
    return re, im


@njit(cache=True, nogil=True, parallel=True)
def sum_over_atoms(q, x, y, z, occupancy, group, kind, b_factor, amplitudes, widths, anomalous, out):  # type: ignore[no-untyped-def]
    """out[p] = Σ_j occupancy_j (f_j(|q_p|) + f'_j + i f''_j) exp(−B_j |q_p|²/4) exp(2πi q_p·r_j).

    q (P, 3); x, y, z, occupancy (N,) with atoms of one group side by side; group (N,) index into kind and
    b_factor (G,); amplitudes, widths (T, n_gaussians) and anomalous (T,) of each kind; out (P,) complex.
    """
    n_atoms = x.shape[0]
    n_kinds, n_gaussians = amplitudes.shape
    for p in prange(q.shape[0]):
        qx, qy, qz = q[p, 0], q[p, 1], q[p, 2]
        quarter_q2 = (qx * qx + qy * qy + qz * qz) / 4.0
        form = np.empty(n_kinds, dtype=np.complex128)
        for t in range(n_kinds):
            f0 = 0.0
            for g in range(n_gaussians):
                f0 += amplitudes[t, g] * np.exp(-widths[t, g] * quarter_q2)
            form[t] = f0 + anomalous[t]
        strength_re = np.empty(_BLOCK)
        strength_im = np.empty(_BLOCK)
        re = 0.0
        im = 0.0
        last_group = -1
        strength = 0.0 + 0.0j
        for start in range(0, n_atoms, _BLOCK):
            stop = min(start + _BLOCK, n_atoms)
            for j in range(start, stop):
                if group[j] != last_group:
                    last_group = group[j]
                    strength = form[kind[last_group]] * np.exp(-b_factor[last_group] * quarter_q2)
                strength_re[j - start] = occupancy[j] * strength.real
                strength_im[j - start] = occupancy[j] * strength.imag
            block_re, block_im = _sum_block(
                qx, qy, qz, x[start:stop], y[start:stop], z[start:stop], strength_re, strength_im
            )
            re += block_re
            im += block_im
        out[p] = complex(re, im)


@njit(cache=True, nogil=True, parallel=True)
def add_with_gaussians(grid, transform, along, amplitudes):  # type: ignore[no-untyped-def]
    """grid[x, y, z] += transform[x, y, z] Σ_g amplitudes_g along[x, g] along[y, g] along[z, g].

    grid, transform (n, n, n) complex; along (n, n_gaussians) real; amplitudes (n_gaussians,) complex.
    """
    n, n_gaussians = along.shape
    for x in prange(n):
        for y in range(n):
            plane = np.empty(n_gaussians, dtype=np.complex128)
            for g in range(n_gaussians):
                plane[g] = amplitudes[g] * along[x, g] * along[y, g]
            for z in range(n):
                profile = 0.0 + 0.0j
                for g in range(n_gaussians):
                    profile += plane[g] * along[z, g]
                grid[x, y, z] += profile * transform[x, y, z]
