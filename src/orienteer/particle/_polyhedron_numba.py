"""CPU kernel of the polyhedral transform (loop letters: p point, f face, v vertex).

The integral of exp(ik·r) over a simplex is its volume times n! times the divided difference of exp at the
phases of its corners (Hermite and Genocchi), here at imaginary arguments i a, i b, ...  Divided differences
have no singular directions: if phases nearly agree, a Taylor series replaces the quotient.
"""

import numpy as np
from numba import njit, prange

_MOST_TERMS = 28


@njit(cache=True, nogil=True)
def _by_series(phases, n, n_terms):  # type: ignore[no-untyped-def]
    """exp[i phases_0, ..., i phases_{n−1}] = e^{im} Σ_k i^k h_k(phases − m) / (n − 1 + k)!, m their mean.

    h_k is the complete homogeneous symmetric polynomial of degree k.
    """
    mean = 0.0
    for v in range(n):
        mean += phases[v] / n
    h = np.zeros(_MOST_TERMS)
    h[0] = 1.0
    for v in range(n):
        y = phases[v] - mean
        for k in range(1, n_terms):
            h[k] += y * h[k - 1]
    factorial = 1.0
    for k in range(2, n):
        factorial *= k
    re = 0.0
    im = 0.0
    for k in range(n_terms):
        term = h[k] / factorial
        factorial *= n + k
        remainder = k % 4
        if remainder == 0:
            re += term
        elif remainder == 1:
            im += term
        elif remainder == 2:
            re -= term
        else:
            im -= term
    return complex(np.cos(mean), np.sin(mean)) * complex(re, im)


@njit(cache=True, nogil=True)
def _over_edge(a, b, exp_a, exp_b):  # type: ignore[no-untyped-def]
    """exp[ia, ib], given exp_a = e^{ia} and exp_b = e^{ib}."""
    difference = b - a
    if abs(difference) > 0.3:
        return (exp_b - exp_a) / complex(0.0, difference)
    half = 0.5 * difference
    middle = 0.5 * (a + b)
    u = half * half
    sinc = 1.0 - u / 6.0 * (1.0 - u / 20.0 * (1.0 - u / 42.0 * (1.0 - u / 72.0 * (1.0 - u / 110.0))))
    return complex(np.cos(middle), np.sin(middle)) * sinc


@njit(cache=True, nogil=True)
def _over_face(a, b, c, exp_a, exp_b, exp_c, scratch):  # type: ignore[no-untyped-def]
    """exp[ia, ib, ic]: half the mean of exp over a triangle."""
    # Order the corners so that a and c are farthest apart: the quotient below then loses the fewest digits.
    if a > b:
        a, b, exp_a, exp_b = b, a, exp_b, exp_a
    if b > c:
        b, c, exp_b, exp_c = c, b, exp_c, exp_b
    if a > b:
        a, b, exp_a, exp_b = b, a, exp_b, exp_a
    if c - a < 1.0:
        scratch[0], scratch[1], scratch[2] = a, b, c
        return _by_series(scratch, 3, 16)
    return (_over_edge(b, c, exp_b, exp_c) - _over_edge(a, b, exp_a, exp_b)) / complex(0.0, c - a)


@njit(cache=True, nogil=True, parallel=True)
def polyhedron_transform(q, vertices, triangles, double_areas, normals, sextuple_volumes, radius, out):  # type: ignore[no-untyped-def]
    """out[p] = ∫ exp(2πi q_p·r) dr over the polyhedron.

    q (P, 3); vertices (V, 3) about an inner point, within radius of it; triangles (F, 3) vertex numbers;
    double_areas (F,), outward normals (F, 3), sextuple_volumes (F,) of the tetrahedra from the inner point.
    """
    n_vertices = vertices.shape[0]
    for p in prange(q.shape[0]):
        kx, ky, kz = 2.0 * np.pi * q[p, 0], 2.0 * np.pi * q[p, 1], 2.0 * np.pi * q[p, 2]
        k2 = kx * kx + ky * ky + kz * kz
        phases = np.empty(n_vertices)
        for v in range(n_vertices):
            phases[v] = kx * vertices[v, 0] + ky * vertices[v, 1] + kz * vertices[v, 2]
        scratch = np.zeros(4)
        total = 0.0 + 0.0j
        if k2 * radius * radius < 1.0:
            # Dividing by a small k² would cost digits: sum over tetrahedra, whose series converges quickly.
            for f in range(triangles.shape[0]):
                scratch[0] = 0.0
                for v in range(3):
                    scratch[v + 1] = phases[triangles[f, v]]
                total += sextuple_volumes[f] * _by_series(scratch, 4, _MOST_TERMS)
            out[p] = total
        else:
            # Gauss: ∫ exp(ik·r) dV = Σ_f (k·n_f) / (i k²) ∫_f exp(ik·r) dS.
            exponentials = np.empty(n_vertices, dtype=np.complex128)
            for v in range(n_vertices):
                exponentials[v] = complex(np.cos(phases[v]), np.sin(phases[v]))
            for f in range(triangles.shape[0]):
                along = kx * normals[f, 0] + ky * normals[f, 1] + kz * normals[f, 2]
                a, b, c = triangles[f, 0], triangles[f, 1], triangles[f, 2]
                mean = _over_face(
                    phases[a],
                    phases[b],
                    phases[c],
                    exponentials[a],
                    exponentials[b],
                    exponentials[c],
                    scratch,
                )
                total += along * double_areas[f] * mean
            out[p] = total / complex(0.0, k2)
