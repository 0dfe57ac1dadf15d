"""From a Fourier shell correlation to one number, the resolution, and the criteria for it.

A resolution is where the curve falls below a threshold (:mod:`orienteer.compare.crossing` defines which dips
count).  Three thresholds are in use: 0.143 for two densities from independent halves of the data (Rosenthal
and Henderson 2003), 0.5 for a density against a known one, and the half-bit curve (van Heel and Schatz 2005),
which demands half a bit of information per voxel, and is therefore higher in shells of few voxels.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.crossing import crossing_of
from orienteer.compare.fsc import Fsc
from orienteer.errors import OrienteerError

HALF_BIT = "half-bit"
# The criteria with the same threshold for every shell.
LEVELS = {"0.143": 0.143, "0.5": 0.5}
CRITERIA = (*LEVELS, HALF_BIT)


@dataclass(frozen=True)
class Resolution:
    """Where a curve falls below a threshold.

    resolution_A : in A; None if the two agree on no shell.
    q_inv_A : 1 / resolution_A; 0 if there is none.
    reaches_edge : whether the curve never falls below the threshold: the voxels, not the data, are the limit.
    words : the result in a sentence.
    """

    resolution_A: float | None
    q_inv_A: float
    reaches_edge: bool
    words: str


def resolution_at(
    fsc: Fsc, criterion: str | float, filled: float = 1.0, order: int = 1, first_shell: int = 1
) -> Resolution:
    """The resolution where a curve falls below a threshold, linear in q between two shells.

    criterion : "0.143", "0.5", "half-bit" or any number between 0 and 1.
    filled : share of the box that the particle fills, by volume; the width of a speckle follows from it.
    order : of the symmetry; only the half-bit curve depends on it, see :func:`half_bit_curve`.
    first_shell : where to begin; shells further in are ignored.

    >>> q = np.arange(4) * 0.01
    >>> resolution_at(Fsc(q, np.array([1, 0.9, 0.6, 0.4]), np.ones(4, int), 10.0), "0.5").resolution_A
    40.0
    """
    threshold = threshold_curve(fsc, criterion, filled, order)
    level = check_criterion(criterion)
    name = HALF_BIT if level is None else f"{level:g}"
    if len(threshold) <= first_shell:
        return Resolution(None, 0.0, False, "The box is too small to have shells.")
    # Skip shells in which not even two equal densities could pass, such as innermost shells of few voxels.
    can_pass = np.flatnonzero(threshold[first_shell:] < 1) + first_shell
    if not len(can_pass):
        return Resolution(None, 0.0, False, f"No shell has enough voxels for {name}.")
    found = crossing_of(
        fsc.q_inv_A, fsc.correlation - threshold, fsc.n_voxels,
        shells_per_speckle=(np.pi / 6 / filled) ** (1 / 3), first_shell=int(can_pass[0]),
    )  # fmt: skip
    if found.q is None:
        inner_A = 1 / fsc.q_inv_A[can_pass[0]]
        words = f"The two agree nowhere: even the innermost shell, {inner_A:.4g} A, is below {name}."
        return Resolution(None, 0.0, False, words)
    resolution_A = 1 / found.q
    if found.shell is None:
        words = (
            f"The curve stays above {name} up to the edge, {resolution_A:.4g} A: the voxels are the limit, "
            "and the resolution is that or better."
        )
    elif found.is_cut_off and np.isnan(fsc.correlation[found.shell :]).all():
        words = f"The curve is above {name} wherever both have content, up to {resolution_A:.4g} A."
    elif found.is_cut_off:
        words = f"The curve is above {name} up to {resolution_A:.4g} A; the next shell has no value."
    else:
        words = f"The curve falls below {name} at {resolution_A:.4g} A."
    is_at_edge = found.shell is None or bool(np.isnan(fsc.correlation[found.shell :]).all())
    return Resolution(resolution_A, found.q, is_at_edge, words)


def threshold_curve(
    fsc: Fsc, criterion: str | float, filled: float = 1.0, order: int = 1
) -> NDArray[np.float64]:
    """The threshold at every shell of a curve, (S,); arguments as in :func:`resolution_at`."""
    level = check_criterion(criterion)
    if level is None:
        return half_bit_curve(fsc.n_voxels, filled, order)
    return np.full(len(fsc.q_inv_A), level)


def check_criterion(criterion: str | float) -> float | None:
    """The threshold of a criterion, equal for every shell; None for "half-bit", which is a curve."""
    if criterion == HALF_BIT:
        return None
    try:
        level = float(criterion)
    except ValueError:
        level = np.nan
    if not 0 < level < 1:
        raise OrienteerError(
            f"'{criterion}' is no criterion for a resolution.",
            'Give "0.143", "0.5", "half-bit" or a number between 0 and 1.',
        )
    return level


def half_bit_curve(n_voxels: NDArray[np.int64], filled: float = 1.0, order: int = 1) -> NDArray[np.float64]:
    """The FSC of two halves whose mean has half a bit of information per voxel, (S,).

    T = (0.2071 + 1.9102 / √n) / (1.2071 + 0.9102 / √n), at most 1, with n independent voxels (van Heel and
    Schatz 2005).

    n_voxels : (S,), with q and -q counted once.
    filled : share of the box that the particle fills, by volume.  The transform of a small particle in a
        large box is smooth from voxel to voxel, so only this share of the voxels is independent.
    order : of the symmetry imposed on the densities, 60 for icosahedral; equivalent voxels count once.
    """
    if not 0 < filled <= 1 or order < 1:
        raise OrienteerError(
            f"a particle that fills {filled:g} of its box with a symmetry of order {order} is impossible.",
            "Give filled above 0 and up to 1, and an order of at least 1 (1: no symmetry).",
        )
    n = np.maximum(np.asarray(n_voxels, np.float64) * filled / order, 1e-12)
    root = 1 / np.sqrt(n)
    # (SNR + 2 √SNR / √n + 1 / √n) / (SNR + 2 √SNR / √n + 1) for log2(1 + 2 SNR) = 1/2.
    return np.minimum((0.2071 + 1.9102 * root) / (1.2071 + 0.9102 * root), 1.0)
