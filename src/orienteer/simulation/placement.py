"""Place the particles of one shot: a chain of balls that never overlap."""

import numpy as np
from numpy.typing import NDArray


def place_in_chain(
    direction: NDArray[np.float64], radius_A: NDArray[np.float64], step_A: NDArray[np.float64],
    slack: NDArray[np.float64],
) -> NDArray[np.float64]:  # fmt: skip
    """Positions (N, M, 3) in A of the particles of N shots; the first of each shot is at the origin.

    Each particle starts at the one before it and moves along its direction by its step, then farther until it
    is clear of all earlier particles.  Steps of 0 give aggregates of particles that touch.

    direction : (N, M, 3) unit vectors.
    radius_A : (N, M) radii of balls that hold the particles.
    step_A : (N, M) smallest distance from the particle before.
    slack : (N, M) smallest gap between two balls, as a fraction of the sum of their radii.

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
            # |away + t direction| = clear has two solutions if the path crosses ball i: exit at the later.
            inside = half**2 - (away**2).sum(1) + clear**2
            along = np.maximum(along, np.where(inside > 0, np.sqrt(np.maximum(inside, 0)) - half, 0.0))
        position[:, m] = start + along[:, None] * direction[:, m]
    return position


def widest_separation_A(position_A: NDArray[np.float64]) -> NDArray[np.float64]:
    """(N,) largest distance between two particles of a shot.

    position_A : (N, M, 3); absent particles have the position of the first one.
    """
    between = position_A[:, :, None] - position_A[:, None]
    return np.asarray(np.sqrt((between**2).sum(-1)).max(axis=(1, 2)))
