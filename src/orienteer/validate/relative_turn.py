"""The rotation between two models, from the poses that both give to the same frames.

Every frame that both have oriented gives one rotation.  If many frames give the same, it need not be searched
for.  If the particle looks the same at several rotations, there are as many such turns, all equivalent.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orienteer.orientation.quaternion import compose, inverse, normalise

# Number of frames that are used, evenly spaced, and of those that must give the same turn.  Of that many
# random turns, hardly ever even two are within a speckle of each other.
_MOST_FRAMES, _FEWEST_ALIKE = 400, 8
# How often the turn is replaced by the mean of the turns near it.
_ROUNDS = 3


def turn_between(first: ArrayLike, second: ArrayLike, within_deg: float) -> NDArray[np.float64] | None:
    """The quaternion (4,) by which the second model is turned to give the first; None if the frames disagree.

    first, second : (n, 4) poses of the same frames in both models.
    within_deg : turns that are closer than this count as the same; about the angle of a speckle at the edge.
    """
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    chosen = np.unique(np.linspace(0, len(a) - 1, min(len(a), _MOST_FRAMES)).astype(np.int64))
    turns = np.asarray(compose(inverse(a[chosen]), b[chosen]))
    turns = turns[np.isfinite(turns).all(axis=1)]
    if len(turns) < _FEWEST_ALIKE:
        return None
    alike = np.cos(np.radians(within_deg) / 2)  # |a . b| is the cosine of half the turn between a and b
    turn: NDArray[np.float64] = turns[np.argmax((np.abs(turns @ turns.T) >= alike).sum(axis=1))]
    for _ in range(_ROUNDS):
        cosines = turns @ turn
        near = np.abs(cosines) >= alike
        if near.sum() < _FEWEST_ALIKE:
            return None
        turn = np.asarray(normalise((turns[near] * np.sign(cosines[near])[:, None]).sum(axis=0)))
    return turn


def turn_of_tables(
    first: dict[str, NDArray[np.generic]], second: dict[str, NDArray[np.generic]], within_deg: float
) -> NDArray[np.float64] | None:
    """The same from the tables of frames of two runs, using the events that both have merged."""
    ids, poses = zip(*(_merged(table) for table in (first, second)), strict=True)
    _, mine, others = np.intersect1d(*ids, return_indices=True)
    return turn_between(poses[0][mine], poses[1][others], within_deg)


def _merged(table: dict[str, NDArray[np.generic]]) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
    """Events and poses of the frames that show the particle."""
    shows = np.asarray(table["model"]) >= 0
    return table["event_id"][shows], table["quaternion"][shows]
