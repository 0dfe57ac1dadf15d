"""Where a curve over shells falls below a level, and stays there.

The first shell below the level does not always tell: a shell has few independent values, and at the zeros of
a form factor next to none.  What is independent is a speckle wide; so a curve has fallen where a shell is
below the level and the mean from there on over the width of a speckle is below it, too, every shell by its
number of independent voxels.  A curve that falls steadily falls at the same place by this rule as by the
first shell alone; a dip narrower than a speckle that the following shells make up for ends nothing.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Shells that have a say at least, however wide a shell is.
_FEWEST_SHELLS = 3


@dataclass(frozen=True)
class Crossing:
    """Where a curve ends that lies above a level.

    q : in the unit of the shells, linear between two of them; None where the curve is below at once.
    shell : the first one that is below for good; None where there is none.
    is_cut_off : whether the curve ends there because that shell has no value.
    """

    q: float | None
    shell: int | None
    is_cut_off: bool = False


def crossing_of(
    q: NDArray[np.float64], excess: NDArray[np.float64], n_voxels: ArrayLike, *,
    shells_per_speckle: float = 1.0, first_shell: int = 1,
) -> Crossing:  # fmt: skip
    """Where a curve falls below its level.

    q : (S,) radius of each shell.
    excess : (S,) the curve over its level.  A shell without a value (NaN) supports no claim, and ends it.
    n_voxels : (S,) independent voxels of each shell, or anything proportional to it.
    shells_per_speckle : over how many shells values depend on each other.
    first_shell : where to begin; shells further in say nothing.

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
    """Where the line from the last shell above a level to the next one meets the level."""
    share = excess[last] / (excess[last] - excess[last + 1])
    return float(q[last] + share * (q[last + 1] - q[last]))
