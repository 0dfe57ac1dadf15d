"""Resolution: which d = 1/|q| the detector reaches, at its edge and in its corners, and rings to draw."""

from dataclasses import dataclass
from math import asin, atan, inf, sin, sqrt, tan

import numpy as np
from numpy.typing import NDArray

from orienteer.detector.detector import Detector, check_wavelength
from orienteer.detector.masks import PixelUse
from orienteer.errors import GeometryMismatch, OrienteerError

# Larger than any particle that is imaged as a whole.
_LARGEST_PARTICLE_A = 1e4
# Largest 2θ of a ring: its radius on a plane square to the beam is infinite at 90 degrees.
_LARGEST_RING_RAD = np.radians(85.0)


def scattering_angle_rad(q_inv_A: float, wavelength_A: float) -> float:
    """The angle 2θ between beam and scattered ray at a |q|; an error from 90 degrees, beyond a flat detector.

    >>> round(float(np.degrees(scattering_angle_rad(0.25, wavelength_A=2.0))), 6)
    28.955024
    """
    sine = q_inv_A * check_wavelength(wavelength_A) / 2
    if not 0 <= sine < sqrt(0.5):
        raise OrienteerError(
            f"{1 / q_inv_A:.4g} Å at a wavelength of {wavelength_A:.4g} Å scatters by 90 degrees or more.",
            f"A flat detector ends before {wavelength_A / sqrt(2):.4g} Å; "
            "use a coarser edge or a shorter wavelength.",
        )
    return 2 * asin(sine)


def edge_resolution_A(detector: Detector, wavelength_A: float) -> float:
    """d in Å of the largest full ring inside the detector; infinite if the beam misses the detector.

    The outline is the convex hull of the panels (of the pixel centres if there are no panels) on a plane
    square to the beam, so gaps and the beam stop do not count; pixels behind the sample do not count either.
    """
    slope = _largest_ring_slope(_outline_slopes(detector))
    q_inv_A = 2 * sin(atan(slope) / 2) / check_wavelength(wavelength_A)
    return 1 / q_inv_A if q_inv_A > 0 else inf


def corner_resolution_A(detector: Detector, wavelength_A: float) -> float:
    """The finest d in Å at the centre of a pixel that may be used; infinite if there is none."""
    used = detector.mask < PixelUse.NEVER
    q_inv_A = float(detector.q_length_inv_A(wavelength_A)[used].max(initial=0.0))
    return 1 / q_inv_A if q_inv_A > 0 else inf


def refuse_no_detail(detector: Detector, wavelength_A: float) -> None:
    """Raise an error if the pixels reach no detail of any particle: a length is probably in another unit.

    >>> from orienteer.detector.square import square_detector
    >>> refuse_no_detail(square_detector(64, pixel_size_m=75e-6, distance_m=20), wavelength_A=2.7)
    Traceback (most recent call last):
    orienteer.errors.GeometryMismatch: the detector resolves 1.62e+04 A at best, no detail of any particle.
    It stands at 20 m and the wavelength is 2.7 A: is a length of the geometry in another unit?
    """
    corner_A = corner_resolution_A(detector, wavelength_A)
    if _LARGEST_PARTICLE_A < corner_A < inf:
        raise GeometryMismatch(
            f"the detector resolves {corner_A:.3g} A at best, no detail of any particle.",
            f"It stands at {detector.distance_m:.4g} m and the wavelength is {wavelength_A:.4g} A: "
            "is a length of the geometry in another unit?",
        )


@dataclass(frozen=True)
class ResolutionRing:
    """A circle of one resolution on the plane square to the beam at the detector's distance."""

    resolution_A: float
    radius_m: float


def resolution_rings(detector: Detector, wavelength_A: float, n_rings: int = 4) -> tuple[ResolutionRing, ...]:
    """Rings at round resolutions, spread evenly in radius out to the corner, the coarsest first."""
    corner_A = corner_resolution_A(detector, wavelength_A)
    if corner_A == inf or detector.distance_m <= 0:
        return ()
    largest_rad = min(2 * asin(min(1.0, wavelength_A / (2 * corner_A))), _LARGEST_RING_RAD)
    rings: dict[float, ResolutionRing] = {}
    for k in range(1, n_rings + 1):
        two_theta = atan(tan(largest_rad) * k / (n_rings + 0.5))
        resolution_A = _round_number(wavelength_A / (2 * sin(two_theta / 2)))
        radius_m = detector.distance_m * tan(scattering_angle_rad(1 / resolution_A, wavelength_A))
        rings[resolution_A] = ResolutionRing(resolution_A, radius_m)
    return tuple(rings.values())


def _round_number(value: float) -> float:
    """The next larger number of two digits.

    >>> _round_number(13.47), _round_number(0.1234)
    (14.0, 0.13)
    """
    decade = 10.0 ** np.floor(np.log10(value))
    return float(f"{np.ceil(value / decade * 10 - 1e-9) * decade / 10:.6g}")


def _outline_slopes(detector: Detector) -> NDArray[np.float64]:
    """(n, 2) points x/z, y/z of the outline, on the forward side."""
    if detector.panels:
        points = np.concatenate([panel.corners_m() for panel in detector.panels])
    else:
        points = detector.positions_m[detector.covered]
    points = points[points[:, 2] > 0]
    return np.asarray(points[:, :2] / points[:, 2:])


def _largest_ring_slope(slopes: NDArray[np.float64]) -> float:
    """Distance from the origin to the nearest side of the points' convex hull; 0 if the origin is outside."""
    from scipy.spatial import ConvexHull, QhullError

    if len(slopes) < 3:
        return 0.0
    try:
        sides = ConvexHull(slopes).equations  # outward unit normal, offset: normal·x + offset <= 0 inside
    except QhullError:  # all points on one line
        return 0.0
    return max(0.0, float(-sides[:, 2].max()))
