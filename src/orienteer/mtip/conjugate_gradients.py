"""Conjugate gradients for (T + shift) x = b with many shifts at once, each to a stated residual.

T is symmetric and has no negative eigenvalues.  Started from 0, the searches of all shifts run through the
same Krylov spaces, with bases that differ only by factors.  So one product T p in each iteration serves every
shift (Jegerlehner 1996, Frommer 2003).  The smallest shift converges last, so its search leads.

Residuals computed by recursion drift away from the true ones.  So at the end every residual
b - (T + shift) x is computed anew in float64, and shifts that miss the tolerance continue from their
solution, each with a search of its own.  In this way products in single precision reach the residuals of
double precision.  When rounding costs more than a search gains, products in double precision take over.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orienteer.compute.arrays import Array, array_namespace, is_on_gpu, to_numpy
from orienteer.errors import OrienteerError

Product: TypeAlias = Callable[[Array], Array]
# A search in single precision ends at this relative residual (the first one), or at this gain (those that
# continue from its solution): beyond, rounding delays it more and more.
_SINGLE_FLOOR, _SINGLE_GAIN = 1e-6, 1e-3
# It also ends when its residual has not fallen for this many iterations plus half of those until its minimum.
_PATIENCE = 50
# Up to this many shifts continue with searches of their own; more are quicker together in double precision.
_FEW = 2
# Recursions aim at this multiple of the tolerance, so that the true residual keeps it, too.
_RESERVE = 0.5
# Searches stop helping when true residuals stay above this share of what they were before.
_LEAST_GAIN = 0.3


@dataclass(frozen=True, eq=False)
class ShiftedSolutions:
    """Solutions of (T + shift) x = b.

    solutions : (L, ...) float64, in the shape of the right side.
    shifts : (L,) float64.
    residuals : (L,) float64, \\|b - (T + shift) x\\| / \\|b\\| of the returned solutions.
    forms : (L,) float64, x.T x.
    converged : (L,) bool, whether the residual keeps the tolerance.
    iterations : steps of all searches together.
    products : arrays that were multiplied by T.
    """

    solutions: Array
    shifts: NDArray[np.float64]
    residuals: NDArray[np.float64]
    forms: NDArray[np.float64]
    converged: NDArray[np.bool_]
    iterations: int
    products: int


def solve_shifted(
    product: Product, right_side: Array, shifts: ArrayLike, *, tolerance: float = 1e-6,
    max_iterations: int = 200, quick_product: Product | None = None,
) -> ShiftedSolutions:  # fmt: skip
    """Solve (T + shift) x = b for every shift.

    product : T of one (...) or several (B, ...) arrays, in float64.
    right_side : b, in any shape.
    shifts : (L,), none of them negative.
    tolerance : largest \\|b - (T + shift) x\\| / \\|b\\|.
    max_iterations : of all searches together; then the best so far is returned (see ``converged``).
    quick_product : T in single precision; reaches the same residuals in less time.
    """
    lambdas = np.atleast_1d(np.asarray(shifts, np.float64))
    if lambdas.ndim != 1 or not len(lambdas) or not (np.isfinite(lambdas) & (lambdas >= 0)).all():
        raise OrienteerError("the shifts must be a list of finite numbers, none of them negative.")
    if not 0 < tolerance < 1:
        raise OrienteerError(f"the tolerance is {tolerance:g}; it must lie between 0 and 1.")
    if max_iterations < 1:
        raise OrienteerError(f"at most {max_iterations} iterations were allowed; at least 1 is needed.")
    xp = array_namespace(right_side)
    b = right_side.astype(xp.float64)
    size = _norm(xp, b)
    if not np.isfinite(size):
        raise OrienteerError("the right side contains values that are not finite.")
    work = _Work(product, quick_product)
    if size == 0:
        zero, nothing = xp.zeros((len(lambdas), *b.shape)), np.zeros(len(lambdas))
        return ShiftedSolutions(zero, lambdas, nothing, nothing.copy(), nothing == 0, 0, 0)

    goal = _RESERVE * tolerance
    first_goal = max(goal, _SINGLE_FLOOR) if work.is_quick else goal
    x, used = _search_together(work, b, lambdas, first_goal, max_iterations)
    true = _Residuals(work, b, lambdas, size)
    left = true.update(x, range(len(lambdas)), tolerance)
    while len(left) and used < max_iterations:
        if work.is_quick and len(left) > _FEW:
            work.is_quick = False
            anew, spent = _search_together(work, b, lambdas[left], goal, max_iterations - used)
            used += spent
            left = true.accept(x, anew, left, tolerance)
            continue
        tried, before = left, true.relative[left]
        gain = np.maximum(goal / before, _SINGLE_GAIN if work.is_quick else 0.0)
        steps, spent = _search_each(work, true.vectors(left), lambdas[left], gain, max_iterations - used)
        used += spent
        for system, step in zip(left, steps, strict=True):
            step += x[int(system)]
        left = true.accept(x, steps, left, tolerance)
        has_helped = (true.relative[tried] <= np.maximum(_LEAST_GAIN * before, tolerance)).all()
        if not (spent and has_helped):
            if not work.is_quick:
                break
            work.is_quick = False  # rounding undoes the gain of single precision
    return ShiftedSolutions(
        x, lambdas, true.relative, true.forms, true.relative <= tolerance, used, work.products
    )


class _Work:
    """The product in use, and a count of its uses."""

    def __init__(self, product: Product, quick_product: Product | None) -> None:
        self._product, self._quick = product, quick_product
        self.is_quick = quick_product is not None
        self.products = 0

    def __call__(self, p: Array, n: int = 1) -> Array:
        self.products += n
        quick = self._quick if self.is_quick else None
        return (quick or self._product)(p)

    def exactly(self, x: Array) -> Array:
        self.products += 1
        return self._product(x)


class _Residuals:
    """True residuals b - (T + shift) x in float64, as last computed for each system (shift)."""

    def __init__(self, work: _Work, b: Array, shifts: NDArray[np.float64], size: float) -> None:
        self._work, self._b, self._shifts, self._size = work, b, shifts, size
        self.relative = np.full(len(shifts), np.inf)
        self.forms = np.zeros(len(shifts))
        self._vectors: dict[int, Array] = {}

    def update(self, x: Array, systems: Iterable[int], tolerance: float) -> NDArray[np.int64]:
        """Compute the residuals of some systems, one by one; returns all systems that miss the tolerance.

        Residual vectors that keep it are not stored.
        """
        xp = array_namespace(self._b)
        for system in systems:
            image = self._work.exactly(x[system])
            residual = self._b - image - self._shifts[system] * x[system]
            self.relative[system] = _norm(xp, residual) / self._size
            self.forms[system] = float((x[system] * image).sum())
            self._vectors.pop(system, None)
            if not self.relative[system] <= tolerance:
                self._vectors[system] = residual
        return np.flatnonzero(~(self.relative <= tolerance))

    def accept(
        self, x: Array, trial: Array, systems: NDArray[np.int64], tolerance: float
    ) -> NDArray[np.int64]:
        """Put trial solutions of some systems into x if they are better; returns as ``update`` does."""
        for system, better in zip(systems, trial, strict=True):
            before, kept = self.relative[system], x[int(system)].copy()
            x[int(system)] = better
            self.update(x, [int(system)], tolerance)
            if not self.relative[system] < before:
                x[int(system)] = kept
                self.update(x, [int(system)], tolerance)
        return np.flatnonzero(~(self.relative <= tolerance))

    def vectors(self, systems: NDArray[np.int64]) -> Array:
        return array_namespace(self._b).stack([self._vectors[int(system)] for system in systems])


def _search_together(
    work: _Work, b: Array, shifts: NDArray[np.float64], goal: float, max_iterations: int
) -> tuple[Array, int]:
    """One search for all shifts, from 0: solutions (L, ...) and iterations.

    zeta[l] is the residual of shift l over that of the leading shift; each iteration multiplies it by
    ``ratio``.
    """
    xp = array_namespace(b)
    lead = float(shifts.min())
    above = shifts - lead
    L = len(shifts)
    x, p_all = xp.zeros((L, *b.shape)), xp.broadcast_to(b, (L, *b.shape)).copy()
    r, p = b.copy(), b.copy()
    rr = float((r * r).sum())
    first = rr
    zeta, ratio = np.ones(L), np.ones(L)
    alpha_before, beta_before = 1.0, 0.0
    least, when = rr, 0
    for iteration in range(max_iterations):
        image = work(p).astype(xp.float64) + lead * p
        curvature = float((p * image).sum())
        if not curvature > 0:  # rounding, or an operator with negative eigenvalues: no further progress
            return x, iteration
        alpha = rr / curvature
        ratio = 1 / (1 + alpha * above + alpha * beta_before / alpha_before * (1 - ratio))
        r -= alpha * image
        rr_next = float((r * r).sum())
        beta = rr_next / rr
        going = zeta * np.sqrt(rr / first) > goal
        step = np.where(going, alpha * ratio, 0.0)
        zeta = zeta * ratio
        _advance(x, p_all, r, step, zeta, beta * ratio**2)
        p = r + beta * p
        rr, alpha_before, beta_before = rr_next, alpha, beta
        if (zeta * np.sqrt(rr / first) <= goal).all():
            return x, iteration + 1
        if rr < least:
            least, when = rr, iteration
        elif work.is_quick and iteration - when > _PATIENCE + when / 2:
            return x, iteration + 1
    return x, max_iterations


def _advance(
    x: Array, p: Array, r: Array, alpha: NDArray[np.float64], zeta: NDArray[np.float64],
    beta: NDArray[np.float64],
) -> None:  # fmt: skip
    """For every shift x += alpha p, then p = zeta r + beta p: in place, in one pass on the GPU."""
    if is_on_gpu(x):
        xp = array_namespace(x)
        column = (len(alpha), *(1,) * (x.ndim - 1))
        factors = (xp.asarray(values).reshape(column) for values in (alpha, zeta, beta))
        _advance_on_gpu()(r[None], *factors, x, p)
        return
    scratch = np.empty_like(r)
    for shift in range(len(alpha)):
        if alpha[shift]:
            x[shift] += np.multiply(p[shift], alpha[shift], out=scratch)
        p[shift] *= beta[shift]
        p[shift] += np.multiply(r, zeta[shift], out=scratch)


@cache
def _advance_on_gpu() -> Any:
    import cupy

    return cupy.ElementwiseKernel(
        "T r, T alpha, T zeta, T beta", "T x, T p", "x += alpha * p; p = zeta * r + beta * p;", "advance"
    )


def _search_each(
    work: _Work, b: Array, shifts: NDArray[np.float64], gains: NDArray[np.float64], max_iterations: int
) -> tuple[Array, int]:
    """A separate search for each of several systems (B, ...): solutions and iterations.

    gains : (B,), the residual to reach, relative to b.
    """
    xp = array_namespace(b)
    column = (len(shifts), *(1,) * (b.ndim - 1))

    def spread(values: NDArray[np.float64]) -> Array:
        return xp.asarray(values).reshape(column)

    x, r, p = xp.zeros_like(b), b.copy(), b.copy()
    rr = _squares(r, r)
    limit = gains**2 * rr
    for iteration in range(max_iterations):
        going = rr > limit
        if not going.any():
            return x, iteration
        image = work(p, int(going.sum())).astype(xp.float64) + spread(shifts) * p
        curvature = _squares(p, image)
        going &= curvature > 0
        if not going.any():
            return x, iteration
        alpha = np.divide(rr, curvature, out=np.zeros_like(rr), where=going)
        x += spread(alpha) * p
        r -= spread(alpha) * image
        rr_next = _squares(r, r)
        beta = np.divide(rr_next, rr, out=np.zeros_like(rr), where=going)
        p = r + spread(beta) * p
        rr = np.where(going, rr_next, 0.0)
    return x, max_iterations


def _squares(a: Array, b: Array) -> NDArray[np.float64]:
    """Inner products (B,) of arrays (B, ...)."""
    return to_numpy((a * b).reshape(len(a), -1).sum(axis=1)).astype(np.float64)


def _norm(xp: Any, a: Array) -> float:
    return float(xp.sqrt((a * a).sum()))
