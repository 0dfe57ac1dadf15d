"""Pixels seen from a beam that does not meet the detector where the geometry says."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, DeviceName, namespace_of_device
from orienteer.detector.detector import Detector, Polarisation


@dataclass(frozen=True, eq=False)
class OffsetGeometry:
    """Ewald vectors and corrections of some pixels for any offset of the beam's centre.

    The beam keeps its direction and meets the plane of the detector at (x, y); in the frame of the beam,
    every pixel lies at its position minus (x, y, 0).  Solid angle and polarisation follow.

    pixels : (P,) indices of the pixels wanted.
    """

    detector: Detector
    pixels: NDArray[np.int64]
    polarisation: Polarisation
    device: DeviceName = "cpu"

    @cached_property
    def _constants(self) -> tuple[Any, Array, Array, Array]:
        xp = namespace_of_device(self.device)
        detector, pixels = self.detector, self.pixels
        efficiency = np.ones(len(pixels)) if detector.efficiency is None else detector.efficiency[pixels]
        areas = _area_vectors_m2(detector)[pixels]
        return xp, xp.asarray(detector.positions_m[pixels]), xp.asarray(areas), xp.asarray(efficiency)

    def at(self, offset_m: Array) -> tuple[Array, Array]:
        """Ewald vectors (K, P, 3) float64 and solid angle x polarisation x efficiency (K, P) float32.

        offset_m : (K, 2) metres.
        """
        xp, positions, areas, efficiency = self._constants
        offset = xp.asarray(offset_m)
        x = positions[:, 0] - offset[:, 0, None]
        y = positions[:, 1] - offset[:, 1, None]
        z = xp.broadcast_to(positions[:, 2], x.shape)
        distance = xp.sqrt(x * x + y * y + z * z)
        kx, ky = x / distance, y / distance
        # cos(2 theta) - 1 without cancellation on the forward side.
        forward = z > 0
        bend = xp.where(
            forward, -(x * x + y * y) / (distance * xp.where(forward, distance + z, 1)), z / distance - 1
        )
        facing = xp.abs(areas[:, 0] * kx + areas[:, 1] * ky + areas[:, 2] * (z / distance))
        polarised = {"x": 1 - kx * kx, "y": 1 - ky * ky, "none": 1 - (kx * kx + ky * ky) / 2}[
            self.polarisation
        ]
        correction = facing / (distance * distance) * polarised * efficiency
        return xp.stack([kx, ky, bend], axis=2), correction.astype(np.float32)


def _area_vectors_m2(detector: Detector) -> NDArray[np.float64]:
    """(P, 3) normal times area of every pixel."""
    if detector.pixels is not None:
        return detector.pixels.area_vectors_m2
    areas = np.zeros((detector.n_pixels, 3))
    for panel in detector.panels:
        areas[panel.frame_indices()] = panel.area_vector_m2
    return areas
