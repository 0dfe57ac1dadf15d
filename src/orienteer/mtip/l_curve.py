"""How much to regularise: the corner of the L-curve.

For every weight lambda of a Tikhonov term there is a misfit rho = |A x - b| and a size eta = |x - x0|.  While
lambda falls from large values, the misfit falls and the size hardly grows.  Once only noise is left to
explain, the size grows and the misfit hardly falls.  Plotted as log eta over log rho, this is the letter L;
its corner lies between the two regimes.

At the minimum d(rho^2) = -lambda d(eta^2), so the curvature follows from rho, eta and the slope of eta alone
(Hansen 1992).  The misfit, a small difference of large numbers, need not be differentiated.

The corner is a good choice if there are many more data than unknowns.  With much noise its lambda tends to be
too large, with little noise too small, by a factor of 3 to 10.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orienteer.errors import OrienteerError


@dataclass(frozen=True, eq=False)
class LCurve:
    """The curve, and what was chosen on it.

    lambdas, misfit, size : (L,) float64, sorted by lambda; misfit and size are norms, not squares.
    curvature : (L,) float64, positive at the corner of an L.
    chosen : index of the chosen lambda in the order in which they were given.
    reason : "corner"; "no corner" if the misfit falls to the end, as without noise, and the smallest lambda
        is best; "steep" if even the largest lambda fits noise; "single" for one lambda.
    """

    lambdas: NDArray[np.float64]
    misfit: NDArray[np.float64]
    size: NDArray[np.float64]
    curvature: NDArray[np.float64]
    chosen: int
    reason: str


def choose_lambda(
    lambdas: ArrayLike, misfit: ArrayLike, size: ArrayLike, *, usable: ArrayLike | None = None
) -> LCurve:
    """The lambda at the corner.

    lambdas : (L,) positive and different, in any order.
    misfit, size : (L,) norms of A x - b and x - x0.
    usable : (L,) bool, those that were solved well enough; all by default.
    """
    given = np.asarray(lambdas, np.float64)
    rho, eta = np.asarray(misfit, np.float64), np.asarray(size, np.float64)
    good = np.ones(given.shape, bool) if usable is None else np.asarray(usable, bool)
    if given.ndim != 1 or not rho.shape == eta.shape == good.shape == given.shape:
        raise OrienteerError("lambdas, misfits and sizes are not lists of the same length.")
    good = good & np.isfinite(rho) & np.isfinite(eta)
    if not good.any():
        raise OrienteerError(
            "none of the regularised solutions has converged.",
            "Allow more iterations, a larger tolerance or larger regularisations.",
        )
    if not (np.isfinite(given) & (given > 0)).all() or len(np.unique(given)) < len(given):
        raise OrienteerError("the regularisations must be positive, finite and different from each other.")
    order = np.flatnonzero(good)[np.argsort(given[good])]
    lam, rho, eta = given[order], rho[order], eta[order]
    curvature, slope = _curvature(lam, rho, eta)
    place, reason = _corner(curvature, slope)
    return LCurve(lam, rho, eta, curvature, int(order[place]), reason)


def _curvature(
    lam: NDArray[np.float64], rho: NDArray[np.float64], eta: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Curvature of the curve (log rho, log eta), and its slope -d log eta / d log rho, from 0 to infinity."""
    if len(lam) < 2:
        return np.zeros(len(lam)), np.zeros(len(lam))
    floor = 1e-300
    t = np.log(lam)
    log_eta = np.log(np.maximum(eta, floor))
    # Sizes only grow when lambda falls; a positive slope at a flat end is rounding.
    eta_slope = np.minimum(_derivative(t, log_eta), 0.0)
    # d rho^2 = -lambda d eta^2, hence rho_slope = -lambda (eta / rho)^2 eta_slope.
    weight = lam * (eta / np.maximum(rho, floor)) ** 2
    rho_slope = -weight * eta_slope
    # The direction of the curve has the tangent eta_slope / rho_slope = -1 / weight; this is its derivative.
    weight_slope = _derivative(t, np.log(np.maximum(weight, floor)))
    turning = weight_slope * weight / (1 + weight**2)
    speed = np.hypot(eta_slope, rho_slope)
    curvature = np.divide(turning, speed, out=np.zeros_like(speed), where=speed > 1e-6)
    return curvature, 1 / np.maximum(weight, floor)


def _derivative(t: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Slope at each place by a parabola through it and its neighbours."""
    return np.asarray(np.gradient(values, t, edge_order=2 if len(t) > 2 else 1))


def _corner(curvature: NDArray[np.float64], slope: NDArray[np.float64]) -> tuple[int, str]:
    """Index of the corner, and why.

    With rising lambda the curve of noisy data is steep, then flat, then steep again where nothing is
    explained any more; the corner lies at the first change.
    """
    if len(curvature) == 1:
        return 0, "single"
    flattest = int(np.argmin(slope))
    if flattest == len(slope) - 1 and slope[-1] > 1:
        return flattest, "steep"
    is_steep_before = slope[:flattest] > 1
    if is_steep_before.any():
        return int(np.argmax(curvature)), "corner"
    return 0, "no corner"
