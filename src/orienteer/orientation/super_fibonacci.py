"""Super-Fibonacci spirals: any number of nearly evenly spread rotations, with equal weights.

Alexa, "Super-Fibonacci Spirals: Fast, Low-Discrepancy Sampling of SO(3)", CVPR 2022.
"""

from functools import partial

import numpy as np

from orienteer.errors import OrienteerError
from orienteer.orientation.pose_grid import PoseGrid
from orienteer.orientation.quaternion import canonical

_PHI = np.sqrt(2)
_PSI = 1.533751168755204288118  # a root of psi^4 = psi + 4
_MOST_POSES = 100_000_000


def super_fibonacci(n_poses: int) -> PoseGrid:
    """A grid of exactly n_poses rotations along two interleaved spirals on the 3-sphere."""
    if not 1 <= n_poses <= _MOST_POSES:
        raise OrienteerError(
            f"a super-Fibonacci grid has 1 to {_MOST_POSES} poses, not {n_poses}.", "Give another --level."
        )
    step = np.arange(n_poses) + 0.5
    inner, outer = np.sqrt(step / n_poses), np.sqrt(1 - step / n_poses)
    alpha, beta = 2 * np.pi * step / _PHI, 2 * np.pi * step / _PSI
    spirals = [inner * np.sin(alpha), inner * np.cos(alpha), outer * np.sin(beta), outer * np.cos(beta)]
    return PoseGrid(
        quaternions=canonical(np.stack(spirals, axis=-1)),
        log_weights=np.full(n_poses, -np.log(n_poses)),
        kind="super-fibonacci",
        level=n_poses,
        finer=partial(super_fibonacci, 8 * n_poses),
    )
