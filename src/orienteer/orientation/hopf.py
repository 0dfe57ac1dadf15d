"""The Hopf grid: HEALPix directions times evenly spaced spins about them; equal weights, 8 children per pose.

Every rotation is a spin about the particle's z axis and then a turn that takes z to a direction on the sphere
(Yershova et al., Int. J. Robotics Research 29, 801, 2010).  Pixels of equal area times equal steps of spin
have equal volumes of SO(3), so the weights are all the same.
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from orienteer.errors import OrienteerError
from orienteer.orientation.healpix import pixel_centres
from orienteer.orientation.pose_grid import PoseGrid
from orienteer.orientation.quaternion import canonical, compose, from_axis_angle, normalise

_N_BASE_SPINS = 6  # at level 0: a step of spin is then about as long as a pixel is wide, at every level
_FINEST_LEVEL = 6  # 19 million rotations


def n_rotations(level: int) -> int:
    """Number of rotations in the Hopf grid: 72 times 8^level.

    >>> [n_rotations(level) for level in (0, 1, 2, 3)]
    [72, 576, 4608, 36864]
    """
    return 12 * _N_BASE_SPINS << (3 * level)


def hopf(level: int) -> PoseGrid:
    """The grid of a level, HEALPix nside = 2^level; the next level has 8 k to 8 k + 7 as children of pose k.

    A pose number is its base pose (of 72) followed by one digit from 0 to 7 per level: two bits choose the
    quarter of the pixel, one bit the half of the spin.
    """
    if not 0 <= level <= _FINEST_LEVEL:
        raise OrienteerError(
            f"there is no Hopf grid of level {level}.",
            f"Give a level from 0 (72 rotations) to {_FINEST_LEVEL} ({n_rotations(_FINEST_LEVEL)}).",
        )
    pose = np.arange(n_rotations(level))
    base, digits = np.divmod(pose, 8**level)
    pixel, spin = np.divmod(base, _N_BASE_SPINS)
    for place in reversed(range(level)):
        digit = (digits >> (3 * place)) & 7
        pixel = 4 * pixel + (digit >> 1)
        spin = 2 * spin + (digit & 1)
    polar, azimuth = pixel_centres(level, pixel)
    spin_deg = (spin + 0.5) * 360 / (_N_BASE_SPINS << level)

    # With azimuth and polar angle alone, the zero of the spin would twist between neighbours near the poles.
    # The shortest turn from the centre of the base pixel keeps all descendants of a pose together.
    base_polar, base_azimuth = pixel_centres(0, base // _N_BASE_SPINS)
    to_base = compose(_about_z(np.degrees(base_azimuth)), from_axis_angle([0, 1, 0], np.degrees(base_polar)))
    to_pixel = compose(
        _shortest_turn(_direction(base_polar, base_azimuth), _direction(polar, azimuth)), to_base
    )
    return PoseGrid(
        quaternions=canonical(compose(to_pixel, _about_z(spin_deg))),
        log_weights=np.full(len(pose), -np.log(len(pose))),
        kind="hopf",
        level=level,
        finer=partial(hopf, level + 1),
        children_in_order=True,
    )


def _about_z(angle_deg: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turns about z, (K, 4)."""
    return from_axis_angle([0, 0, 1], angle_deg)  # type: ignore[no-any-return]


def _direction(polar: NDArray[np.float64], azimuth: NDArray[np.float64]) -> NDArray[np.float64]:
    """Unit vectors, (K, 3)."""
    return np.stack(
        [np.sin(polar) * np.cos(azimuth), np.sin(polar) * np.sin(azimuth), np.cos(polar)], axis=-1
    )


def _shortest_turn(start: NDArray[np.float64], end: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turns (K, 4) about start x end that take unit vectors start (K, 3) to end, less than 180° away."""
    scalar = 1 + np.sum(start * end, axis=-1, keepdims=True)
    return normalise(np.concatenate([scalar, np.cross(start, end)], axis=-1))  # type: ignore[no-any-return]
