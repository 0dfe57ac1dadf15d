"""The autocorrelation that fits frames of known orientation best, for many regularisations at once.

    minimise sum_k w_k |fluence (A x)_k - b_k|^2 + lambda |y|^2 + outside |F x beyond the data|^2

over all real y, where x = x0 + support y.  Regularisations are given relative to the total weight of the data
(see ``NormalEquations.total_weight``), so that they mean the same for any number of frames and unit of
weights.  The right side of the equations for y does not depend on lambda, so one search serves all lambdas.

The weights determine how many iterations a search needs.  Equal weights need few, but hardly constrain the
weak intensities far out.  Weights of one over the variance, which span decades, need several times as many.
One over the square root of the mean intensity of the ring lies in between.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orienteer.compute.arrays import Array, array_namespace
from orienteer.errors import OrienteerError
from orienteer.mtip.conjugate_gradients import ShiftedSolutions, solve_shifted
from orienteer.mtip.l_curve import LCurve, choose_lambda
from orienteer.mtip.normal_equations import NormalEquations
from orienteer.mtip.support import autocorrelation_support
from orienteer.mtip.toeplitz import ToeplitzProduct

Effort = Literal["mixed", "double"]


@dataclass(frozen=True, eq=False)
class Merge:
    """Autocorrelations for all regularisations, and the one to use.

    autocorrelations : (L, n, n, n) float64, in the order of the regularisations; their plain transform is
        the intensity, in the unit of the frames at fluence 1.
    regularisations : (L,) relative to the total weight.
    misfits : (L,) sum of w |fluence A x - b|^2, with the penalty outside if there is one.
    curve : the L-curve; its ``chosen`` is the one to use.
    solver : residuals and iterations.
    """

    autocorrelations: Array
    regularisations: NDArray[np.float64]
    misfits: NDArray[np.float64]
    curve: LCurve
    solver: ShiftedSolutions

    @property
    def autocorrelation(self) -> Array:
        """The chosen one, (n, n, n) float64."""
        return self.autocorrelations[self.curve.chosen]


def merge(
    equations: NormalEquations, regularisations: ArrayLike, *, outside: float = 0.0,
    support: Array | None = None, start: Array | None = None, tolerance: float = 1e-5,
    max_iterations: int = 200, effort: Effort = "mixed",
) -> Merge:  # fmt: skip
    """Solve the normal equations for every regularisation.

    regularisations : (L,) lambda over the total weight, positive.
    outside : penalty of intensity beyond the measured sphere, relative to the total weight.
    support : (n, n, n), even; voxels in which x may differ from 0, or how far each may move from the start,
        relative to the largest; by default all voxels that have mates.  (x - x0) / support is regularised.
    start : (n, n, n) x0, to which the regularisation draws; 0 by default.
    tolerance : largest residual of the solutions, relative to the right side.
    effort : "mixed" computes products in single precision and reaches the same residuals as "double".
    """
    xp = array_namespace(equations.kernel)
    relative = np.atleast_1d(np.asarray(regularisations, np.float64))
    unit = equations.total_weight
    if not unit > 0:
        raise OrienteerError(
            "there is nothing to merge: no pixel of any frame has a weight above 0.",
            "Mask fewer pixels, or check why so many frames count as junk.",
        )
    if effort not in ("mixed", "double"):
        raise OrienteerError(f"there is no effort {effort!r}.", "Use 'mixed' or 'double'.")
    allowed = _even(xp.asarray(autocorrelation_support(equations.n) if support is None else support))
    allowed = allowed.astype(xp.float64)
    radius = equations.q_max_inv_A * equations.voxel_A
    options = {"support": allowed, "outside": outside * unit, "radius": radius}
    product = ToeplitzProduct(equations.kernel, **options)
    quick = ToeplitzProduct(equations.kernel, **options, precision="single") if effort == "mixed" else None

    x0 = xp.zeros_like(equations.right_side) if start is None else xp.asarray(start, dtype=xp.float64)
    if x0.shape != equations.right_side.shape or not bool(xp.isfinite(x0).all()):
        raise OrienteerError(f"the start must be finite, of shape {tuple(equations.right_side.shape)}.")
    x0 = x0 * (allowed > 0)
    image = ToeplitzProduct(equations.kernel, outside=outside * unit, radius=radius)(x0)
    right = (equations.right_side - image) * allowed
    solver = solve_shifted(
        product, right, relative * unit, tolerance=tolerance, max_iterations=max_iterations,
        quick_product=quick,
    )  # fmt: skip
    misfits = _misfits(equations, x0, image, right, solver)
    sizes = _norms(solver.solutions)
    curve = choose_lambda(relative, np.sqrt(misfits / unit), sizes, usable=_usable(solver))
    return Merge(solver.solutions * allowed + x0, relative, misfits, curve, solver)


def misfit(equations: NormalEquations, autocorrelation: Array) -> float:
    """Sum of w |fluence A x - b|^2 over the frames, computed from their sums alone.

    With sums of frames that x was not made from, it measures how well x predicts them; half sets choose
    their regularisation by it.
    """
    return float(misfits(equations, [autocorrelation])[0])


def misfits(equations: NormalEquations, autocorrelations: Iterable[Array]) -> NDArray[np.float64]:
    """The misfit of each of L autocorrelations (n, n, n), (L,)."""
    product = ToeplitzProduct(equations.kernel)
    found = []
    for x in autocorrelations:
        square = float((x * product(x)).sum())
        found.append(square - 2 * float((x * equations.right_side).sum()) + equations.data_square)
    return np.array(found)


def _misfits(
    equations: NormalEquations, x0: Array, image: Array, right: Array, solver: ShiftedSolutions
) -> NDArray[np.float64]:
    """|A x - b|^2 for x = x0 + y: that of x0, minus 2 y.right, plus y.T y."""
    at_start = float((x0 * (image - 2 * equations.right_side)).sum()) + equations.data_square
    gained = np.array([float((y * right).sum()) for y in solver.solutions])
    # These are differences of sums over all pixels: nothing below the last digits of the sums is known.
    return np.maximum(at_start - 2 * gained + solver.forms, 1e-14 * equations.data_square)


def _usable(solver: ShiftedSolutions) -> NDArray[np.bool_]:
    """Solutions that have converged; if none has, those within twice the smallest residual."""
    if solver.converged.any():
        return solver.converged
    return np.asarray(solver.residuals <= 2 * solver.residuals.min())


def _norms(volumes: Array) -> NDArray[np.float64]:
    return np.array([float((x * x).sum()) ** 0.5 for x in volumes])


def _even(support: Array) -> Array:
    """The support, checked to be even about n // 2, as every autocorrelation is."""
    n = support.shape[0]
    if support.ndim != 3 or len(set(support.shape)) != 1:
        raise OrienteerError(f"the support has shape {tuple(support.shape)}; expected a cube.")
    inner = support[(slice(1 - n % 2, None),) * 3]
    first_layers = int((support != 0).sum()) - int((inner != 0).sum())
    if first_layers or not bool((inner == inner[::-1, ::-1, ::-1]).all()):
        raise OrienteerError(
            "the support of an autocorrelation must be even about its centre.",
            "autocorrelation_support(n, voxel_A, diameter_A) makes one.",
        )
    return support
