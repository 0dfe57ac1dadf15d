"""The square detector: one flat panel, square to the beam and centred on it."""

from math import tan
from typing import Literal

import numpy as np

from orienteer.detector.detector import Detector
from orienteer.detector.masks import mask_from_radii
from orienteer.detector.panel import Panel
from orienteer.detector.resolution import scattering_angle_rad
from orienteer.errors import OrienteerError


def square_detector(
    n_pixels: int | tuple[int, int] = 128,
    pixel_size_m: float | None = None,
    distance_m: float | None = None,
    *,
    edge_resolution_A: float | None = None,
    wavelength_A: float | None = None,
    beam_stop_radius_pixels: float = 0.0,
    corners: Literal["orient", "merge_only"] = "orient",
    name: str = "square",
) -> Detector:
    """A flat panel centred on the beam; frame (n_y, n_x), x along the fast axis, y along the slow one.

    Give two of ``pixel_size_m``, ``distance_m`` and ``edge_resolution_A``; the third follows.  The edge is
    the middle of a side (the shorter half width), so the corners reach higher resolution.

    n_pixels : along both sides, or (n_slow, n_fast).
    edge_resolution_A : d = 1/|q| at the edge; needs the wavelength.
    beam_stop_radius_pixels : pixels whose centre is closer to the beam are never used.
    corners : with "merge_only", pixels beyond the half width are merged but do not orient, as in Dragonfly.

    >>> detector = square_detector(4, pixel_size_m=0.001, distance_m=0.1)
    >>> detector.positions_m[:2]
    array([[-0.0015, -0.0015,  0.1   ],
           [-0.0005, -0.0015,  0.1   ]])
    """
    n_slow, n_fast = (n_pixels, n_pixels) if isinstance(n_pixels, int | np.integer) else n_pixels
    if min(n_slow, n_fast) < 1:
        raise OrienteerError(
            f"a detector of {n_slow} x {n_fast} pixels has no pixels.", "Give at least 1 x 1."
        )
    pixel_size_m, distance_m = _size_and_distance(
        min(n_slow, n_fast) / 2, pixel_size_m, distance_m, edge_resolution_A, wavelength_A
    )
    panel = Panel(
        name,
        origin_m=(-n_fast / 2 * pixel_size_m, -n_slow / 2 * pixel_size_m, distance_m),
        fast_m=(pixel_size_m, 0, 0),
        slow_m=(0, pixel_size_m, 0),
        shape=(n_slow, n_fast),
    )
    detector = Detector([panel], name=name)
    if corners not in ("orient", "merge_only"):
        raise OrienteerError(f"corners is '{corners}'; expected 'orient' or 'merge_only'.")
    half_width_m = min(n_slow, n_fast) / 2 * pixel_size_m
    return detector.with_mask(
        mask_from_radii(
            detector.positions_m,
            never_within_m=beam_stop_radius_pixels * pixel_size_m,
            merge_only_beyond_m=half_width_m if corners == "merge_only" else np.inf,
        )
    )


def _size_and_distance(
    half_width_pixels: float,
    pixel_size_m: float | None,
    distance_m: float | None,
    edge_resolution_A: float | None,
    wavelength_A: float | None,
) -> tuple[float, float]:
    given = {"pixel_size_m": pixel_size_m, "distance_m": distance_m, "edge_resolution_A": edge_resolution_A}
    for field, value in given.items():
        if value is not None and not 0 < value < np.inf:
            raise OrienteerError(f"{field} is {value}; expected a positive number.")
    if sum(value is not None for value in given.values()) != 2:
        names = [field for field, value in given.items() if value is not None]
        raise OrienteerError(
            f"a square detector is set by two of {', '.join(given)}; given: {', '.join(names) or 'none'}.",
            "Give exactly two of them.",
        )
    if pixel_size_m is not None and distance_m is not None:
        return float(pixel_size_m), float(distance_m)
    if wavelength_A is None:
        raise OrienteerError(
            "edge_resolution_A needs wavelength_A.", "Beam(photon_energy_eV=...).wavelength_A gives it."
        )
    slope = tan(scattering_angle_rad(1 / float(edge_resolution_A or 0), wavelength_A))
    if pixel_size_m is not None:
        return float(pixel_size_m), half_width_pixels * pixel_size_m / slope
    return float(distance_m or 0) * slope / half_width_pixels, float(distance_m or 0)
