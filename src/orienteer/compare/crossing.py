"""Find where a curve over shells falls below a level and stays there.

The first shell below the level is not always the end: a shell has few independent values, and near the zeros
of a form factor hardly any.  Values are independent over the width of a speckle.  So a curve has fallen where
a shell is below the level, and so is the mean from there on over the width of a speckle, weighted by the
independent voxels of each shell.  A curve that falls steadily ends at its first shell below the level; a dip
narrower than a speckle, for which the following shells make up, is ignored.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

# The mean is taken over at least this many shells, however wide they are.
_FEWEST_SHELLS = 3


@dataclass(frozen=True)
class Crossing:
    """Where a curve falls below its level.

    q : in the unit of the shells, linear between two of them; None if the curve is below from the beginning.
    shell : the first shell from which on it stays below; None if there is none.
    is_cut_off : whether the curve ends there because that shell has no value.
    """

    q: float | None
    shell: int | None
    is_cut_off: bool = False


def crossing_of(
    q: NDArray[np.float64], excess: NDArray[np.float64], n_voxels: ArrayLike, *,
    shells_per_speckle: float = 1.0, first_shell: int = 1,
) -> Crossing:  # fmt: skip
    """Find where a curve falls below its level.

    q : (S,) radius of each shell.
    excess : (S,) the curve minus its level.  A shell without a value (NaN) ends the curve.
    n_voxels : (S,) independent voxels of each shell, or anything proportional to them.
    shells_per_speckle : number of shells over which values are correlated.
    first_shell : where to begin; shells further in are ignored.

    >>> found = crossing_of(np.arange(5.0), np.array([1, 0.3, -0.1, 0.3, 0.3]), np.ones(5))
    >>> found.q, crossing_of(np.arange(5.0), np.array([1, 0.3, -0.1, -0.3, 0.2]), np.ones(5)).q
    (4.0, 1.75)
    """
    weight = np.broadcast_to(np.asarray(n_voxels, np.float64), excess.shape)
    width = max(_FEWEST_SHELLS, int(np.ceil(shells_per_speckle)))
    last = first_shell - 1
    for shell in range(first_shell, len(excess)):
        if np.isnan(excess[shell]):
            return Crossing(float(q[last]) if last >= first_shell else None, shell, is_cut_off=True)
        if excess[shell] >= 0:
            last = shell
            continue
        following = slice(shell, shell + width)
        known = np.isfinite(excess[following])
        if np.sum((weight[following] * excess[following])[known]) < 0:
            return Crossing(_between(q, excess, last) if last >= first_shell else None, shell)
    return Crossing(float(q[last]) if last >= first_shell else None, None)


def _between(q: NDArray[np.float64], excess: NDArray[np.float64], last: int) -> float:
    """Where the line from the last shell above the level to the next one crosses the level."""
    share = excess[last] / (excess[last] - excess[last + 1])
    return float(q[last] + share * (q[last + 1] - q[last]))
