"""Photons of hits in rings about the beam: the radial profile, from which size and brightness follow."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from orienteer.detector.detector import Detector
from orienteer.detector.masks import PixelUse
from orienteer.detector.scattering_geometry import Polarisation
from orienteer.errors import GeometryMismatch, OrienteerError
from orienteer.source.patterns import Patterns

MOST_RINGS = 48
# A ring is ignored in a frame whose own mask leaves less than this share of it.
_LEAST_SEEN = 0.05


class Rings:
    """Rings of a detector: narrow near the beam, where the photons are, and wider outwards.

    pixels : (U,) indices of the pixels that are used.
    ring : (U,) the ring of each, from 0 at the beam.
    q_inv_A : (U,) length of the scattering vector of each.
    correction : (U,) solid angle, polarisation and efficiency of each, with mean 1.
    n : number of rings, G.
    """

    def __init__(
        self, detector: Detector, wavelength_A: float, polarisation: Polarisation = "x", n: int = MOST_RINGS
    ) -> None:
        correction = detector.correction(polarisation)
        self.pixels = np.flatnonzero((detector.mask < PixelUse.NEVER) & (correction > 0))
        if len(self.pixels) < 2:
            raise OrienteerError(
                "fewer than two pixels of the detector may be used, too few for hits.", "Mask fewer pixels."
            )
        self.n_pixels = detector.n_pixels
        self.q_inv_A = detector.q_length_inv_A(wavelength_A)[self.pixels]
        self.correction = correction[self.pixels] / correction[self.pixels].mean()
        position = (self.q_inv_A / (self.q_inv_A.max() * (1 + 1e-9))) ** (2 / 3)
        _, self.ring = np.unique((position * n).astype(np.int64), return_inverse=True)
        self.n = int(self.ring.max()) + 1
        self._ring_of_pixel = np.full(self.n_pixels, self.n, dtype=np.int64)
        self._ring_of_pixel[self.pixels] = self.ring

    def sums(self, values: NDArray[np.floating]) -> NDArray[np.float64]:
        """Sums (G,) over each ring of values (U,) of the used pixels."""
        return np.asarray(np.bincount(self.ring, weights=values, minlength=self.n), dtype=np.float64)

    def photons(self, patterns: Patterns) -> NDArray[np.float32]:
        """Photons (N, G) of each frame in each ring.

        If the mask of a frame hides part of a ring, the rest is scaled up to the whole ring.
        """
        if patterns.n_pixels != self.n_pixels:
            raise GeometryMismatch(
                f"the hits have {patterns.n_pixels} pixels, but the detector has {self.n_pixels}.",
                "Give the detector that recorded them.",
            )
        N, G = len(patterns), self.n
        if patterns.is_sparse:
            lists = patterns.sparse()
            frame = np.repeat(np.arange(N), np.diff(lists.start))
            place = frame * (G + 1) + self._ring_of_pixel[lists.pixel]
            photons = np.bincount(place, lists.count, minlength=N * (G + 1)).reshape(N, G + 1)[:, :G]
        else:
            used = np.nan_to_num(patterns.without_forbidden().dense()[:, self.pixels], copy=False)
            photons = used.astype(np.float32) @ self._member
        forbidden = patterns.forbidden
        if forbidden is not None:
            seen = ((~forbidden[:, self.pixels]) * self.correction.astype(np.float32)) @ self._member
            share = seen / self.sums(self.correction)
            photons = np.where(share > _LEAST_SEEN, photons / np.maximum(share, _LEAST_SEEN), 0.0)
        return photons.astype(np.float32)

    @cached_property
    def _member(self) -> NDArray[np.float32]:
        """(U, G) 1 if the pixel is in the ring, else 0; a matrix product with it sums over rings."""
        member = np.zeros((len(self.ring), self.n), dtype=np.float32)
        member[np.arange(len(self.ring)), self.ring] = 1
        return member
