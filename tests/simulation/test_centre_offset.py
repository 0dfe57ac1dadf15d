"""A beam off centre against a detector that was moved the other way."""

import numpy as np
import pytest

from orienteer.detector.square import square_detector
from orienteer.simulation.centre_offset import OffsetGeometry


@pytest.mark.parametrize("polarisation", ["x", "y", "none"])
def test_a_beam_off_centre_equals_a_moved_detector(polarisation: str) -> None:
    detector = square_detector((12, 16), pixel_size_m=0.01, distance_m=0.1)
    detector = detector.with_efficiency(np.linspace(0.5, 1, 192))
    offsets = np.array([[0.0, 0.0], [3e-3, -1e-3], [-0.02, 0.05]])
    pixels = np.arange(0, 192, 3)
    ewald, correction = OffsetGeometry(detector, pixels, polarisation).at(offsets)  # type: ignore[arg-type]
    for k, (x, y) in enumerate(offsets):
        moved = detector.moved((-x, -y, 0))
        np.testing.assert_allclose(ewald[k], moved.ewald_vectors[pixels], atol=1e-14)
        np.testing.assert_allclose(correction[k], moved.correction(polarisation)[pixels], rtol=1e-6)  # type: ignore[arg-type]
