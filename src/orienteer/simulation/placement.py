"""Where the particles of one shot are: a chain of balls that never overlap."""

import numpy as np
from numpy.typing import NDArray


def place_in_chain(
    direction: NDArray[np.float64], radius_A: NDArray[np.float64], step_A: NDArray[np.float64],
    slack: NDArray[np.float64],
) -> NDArray[np.float64]:  # fmt: skip
    """Positions (N, M, 3) in A of the particles of N shots; the first of each shot is at the origin.

    Each particle leaves the one before it in its direction, goes its step, and then on until it is clear of
    all that are there: of a step 0 there come aggregates in which each particle touches another.

    direction : (N, M, 3) unit vectors.
    radius_A : (N, M) radii of balls that hold the particles.
    step_A : (N, M) distance from the one before.
    slack : (N, M) how much farther than touching is clear, as a share of the sum of the radii.

    >>> x = np.array([[[1.0, 0, 0], [1, 0, 0], [-1, 0, 0]]])  # the third is sent back through both others
    >>> place_in_chain(x, np.full((1, 3), 10.0), np.zeros((1, 3)), np.zeros((1, 3)))[0, :, 0]
    array([  0.,  20., -20.])
    """
    position = np.zeros(direction.shape)
    for m in range(1, direction.shape[1]):
        start, along = position[:, m - 1], step_A[:, m]
        for i in range(m):
            clear = (radius_A[:, i] + radius_A[:, m]) * (1 + slack[:, m])
            away = start - position[:, i]
            half = (away * direction[:, m]).sum(1)
            # |away + t direction| = clear has two solutions where the way meets ball i: out at the later one.
            inside = half**2 - (away**2).sum(1) + clear**2
            along = np.maximum(along, np.where(inside > 0, np.sqrt(np.maximum(inside, 0)) - half, 0.0))
        position[:, m] = start + along[:, None] * direction[:, m]
    return position


def widest_separation_A(position_A: NDArray[np.float64]) -> NDArray[np.float64]:
    """(N,) largest distance between two particles of a shot.

    position_A : (N, M, 3); particles that are not there lie where another one is.
    """
    between = position_A[:, :, None] - position_A[:, None]
    return np.asarray(np.sqrt((between**2).sum(-1)).max(axis=(1, 2)))
