"""Geometry of the pixels for a beam that meets the detector off the centre given by the geometry file."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, DeviceName, namespace_of_device, to_device
from orienteer.detector.detector import Detector
from orienteer.detector.scattering_geometry import (
    Polarisation,
    ewald_vectors,
    polarisation_factor,
    solid_angle_sr,
)


@dataclass(frozen=True, eq=False)
class OffsetGeometry:
    """Ewald vectors and corrections of some pixels for any offset of the beam's centre.

    The beam keeps its direction and meets the plane of the detector at (x, y); in the frame of the beam,
    every pixel lies at its position minus (x, y, 0).  Solid angle and polarisation follow.

    pixels : (P,) indices of the wanted pixels.
    """

    detector: Detector
    pixels: NDArray[np.int64]
    polarisation: Polarisation
    device: DeviceName = "cpu"

    @cached_property
    def _of_pixels(self) -> tuple[Array, Array, Array]:
        """Positions (P, 3), area vectors (P, 3) and efficiency (P,) on the device."""
        detector, pixels = self.detector, self.pixels
        efficiency = np.ones(len(pixels)) if detector.efficiency is None else detector.efficiency[pixels]
        arrays = (detector.positions_m[pixels], detector.area_vectors_m2[pixels], efficiency)
        positions, areas, efficiency = (to_device(array, self.device) for array in arrays)
        return positions, areas, efficiency

    def at(self, offset_m: Array) -> tuple[Array, Array]:
        """Ewald vectors (K, P, 3) float64 and solid angle x polarisation x efficiency (K, P) float32.

        offset_m : (K, 2) metres.
        """
        xp = namespace_of_device(self.device)
        positions, areas, efficiency = self._of_pixels
        shift = xp.zeros((len(offset_m), 1, 3))
        shift[:, 0, :2] = to_device(offset_m, self.device)
        seen = positions - shift
        vectors = ewald_vectors(seen)
        correction = (
            solid_angle_sr(seen, areas) * polarisation_factor(vectors, self.polarisation) * efficiency
        )
        return vectors, correction.astype(np.float32)
