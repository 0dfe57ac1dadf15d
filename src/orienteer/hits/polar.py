"""Hits in polar coordinates about the beam, in which turning a pattern in the plane is a shift."""

import numpy as np
from numpy.typing import NDArray

from orienteer.detector.detector import Detector
from orienteer.detector.masks import PixelUse
from orienteer.detector.scattering_geometry import Polarisation
from orienteer.errors import GeometryMismatch, OrienteerError
from orienteer.source.patterns import Patterns


class PolarGrid:
    """Bins of a detector by distance from the beam and by angle.

    n_rings, n_angles : R and A; bin r * A + a is ring r, angle a.
    q_inv_A : (R + 1,) edges of the rings.
    correction : (R * A,) sum over the pixels of a bin of solid angle, polarisation and efficiency, whose mean
        over pixels is 1; 0 for bins without a pixel.
    """

    def __init__(
        self, detector: Detector, wavelength_A: float, q_max_inv_A: float, n_rings: int = 20,
        n_angles: int = 64, polarisation: Polarisation = "x",
    ) -> None:  # fmt: skip
        self.n_rings, self.n_angles, self.n_pixels = n_rings, n_angles, detector.n_pixels
        q = detector.q_inv_A(wavelength_A)
        length, correction = detector.q_length_inv_A(wavelength_A), detector.correction(polarisation)
        used = (detector.mask < PixelUse.NEVER) & (correction > 0) & (length < q_max_inv_A)
        if not used.any():
            raise OrienteerError(
                f"no usable pixel lies below {q_max_inv_A:.3g} 1/A.", "Give a larger q_max_inv_A."
            )
        self.q_inv_A = np.linspace(0, q_max_inv_A, n_rings + 1)
        ring = np.minimum((length / q_max_inv_A * n_rings).astype(np.int64), n_rings - 1)
        turn = np.mod(np.arctan2(q[:, 1], q[:, 0]) / (2 * np.pi), 1.0)
        angle = np.minimum((turn * n_angles).astype(np.int64), n_angles - 1)
        # Unused pixels share an extra bin after the last.
        self._bin = np.where(used, ring * n_angles + angle, self.n_bins)
        self.correction = self._sums(np.where(used, correction / correction[used].mean(), 0.0))

    @property
    def n_bins(self) -> int:
        """R * A."""
        return self.n_rings * self.n_angles

    def photons(self, patterns: Patterns) -> NDArray[np.float32]:
        """Photons (N, R * A) of each hit in each bin."""
        if patterns.n_pixels != self.n_pixels:
            raise GeometryMismatch(
                f"the hits have {patterns.n_pixels} pixels, but the detector has {self.n_pixels}.",
                "Give the detector that recorded them.",
            )
        lists = patterns.sparse()
        n, width = len(patterns), self.n_bins + 1
        place = np.repeat(np.arange(n) * width, np.diff(lists.start)) + self._bin[lists.pixel]
        counts = np.bincount(place, weights=lists.count, minlength=n * width).reshape(n, width)
        return np.asarray(counts[:, :-1], dtype=np.float32)

    def background(self, of_pixels: NDArray[np.floating] | None) -> NDArray[np.float64]:
        """Background photons (R * A,) of the bins from those (P,) of the pixels; None: no background."""
        return np.zeros(self.n_bins) if of_pixels is None else self._sums(np.asarray(of_pixels, np.float64))

    def turned(self, template: NDArray[np.float64]) -> NDArray[np.float64]:
        """A template (R, A) turned by each of the angles, (A, R * A)."""
        angle = np.arange(self.n_angles)
        source = (angle[None, :] - angle[:, None]) % self.n_angles
        return template[:, source].transpose(1, 0, 2).reshape(self.n_angles, -1)

    def turned_back(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum (R, A) of rows (A, R * A), each turned back by its angle: the adjoint of ``turned``."""
        angle = np.arange(self.n_angles)
        source = (angle[None, :] + angle[:, None]) % self.n_angles
        by_angle = rows.reshape(self.n_angles, self.n_rings, self.n_angles)
        return np.asarray(np.take_along_axis(by_angle, source[:, None, :], axis=2).sum(axis=0))

    def picture(self, template: NDArray[np.float64], side: int = 128) -> NDArray[np.float32]:
        """A template (R, A) as a picture (side, side) with y up; NaN in rings without a pixel."""
        axis = (np.arange(side) + 0.5) / side * 2 - 1
        x, y = axis[None, :], axis[:, None]
        ring = (np.hypot(x, y) * self.n_rings).astype(np.int64)
        angle = (np.mod(np.arctan2(y, x) / (2 * np.pi), 1.0) * self.n_angles).astype(np.int64) % self.n_angles
        seen = np.append(self.correction.reshape(self.n_rings, self.n_angles).any(axis=1), False)
        ring = np.minimum(ring, self.n_rings)
        inside = seen[ring]
        return np.where(inside, template[np.where(inside, ring, 0), angle], np.nan).astype(np.float32)

    def _sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(self._bin, weights=values, minlength=self.n_bins + 1)[:-1].astype(np.float64)
