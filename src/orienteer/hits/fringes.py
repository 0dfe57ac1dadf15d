"""Fringes of hits: two particles in one shot interfere, with finer fringes than a single particle has.

The transform of a pattern is the autocorrelation of the object, which ends at the object's diameter.  Two
particles at a separation s add a peak at s.  The radial mean is subtracted from the pattern, and the rest is
weighted by I / (I + b), the best weight to detect faint fringes I cos(2 π q s) on a background b.
"""

import numpy as np
from numpy.typing import NDArray

from orienteer.detector.detector import Detector
from orienteer.hits.rings import Rings
from orienteer.source.patterns import Patterns

N_BANDS = 12
# Cells along each side of the part of the detector that is searched.
_CELLS = 64
# Pixels of the frames that are searched together (one frame at least); some arrays have this size.
_PIXELS_AT_ONCE = 1 << 21


def pixel_spacing_inv_A(detector: Detector, pixels: NDArray[np.int64], wavelength_A: float) -> float:
    """Typical distance in 1/A between neighbouring pixels."""
    return float(np.sqrt(np.median(detector.solid_angle_sr[pixels])) / wavelength_A)


class Fringes:
    """Searches hits for fringes of any direction and period.

    spacing_inv_A : edge of a cell; separations up to 1 / (2 spacing_inv_A) can be distinguished.
    separation_A : (J + 1,) edges of the bands of separations; the last band includes all larger ones.
    """

    def __init__(self, detector: Detector, rings: Rings, wavelength_A: float, spacing_inv_A: float) -> None:
        self.rings, self.spacing_inv_A = rings, spacing_inv_A
        xy = detector.q_inv_A(wavelength_A)[rings.pixels, :2]
        place = np.floor(xy / spacing_inv_A).astype(np.int64) + _CELLS // 2
        inside = np.flatnonzero(((place >= 0) & (place < _CELLS)).all(axis=1))
        cell = place[inside, 1] * _CELLS + place[inside, 0]
        order = np.argsort(cell, kind="stable")
        # Pixels are sorted by cell, so that each cell is a contiguous piece of the list.
        pixels, cell = inside[order], cell[order]
        self._stored, self._ring = rings.pixels[pixels], rings.ring[pixels]
        self._correction = rings.correction[pixels].astype(np.float32)
        self._starts = np.flatnonzero(np.diff(cell, prepend=-1))
        self._cell = cell[self._starts]
        along, across = np.fft.fftfreq(_CELLS)[:, None], np.fft.rfftfreq(_CELLS)[None, :]
        separation = np.hypot(along, across) / spacing_inv_A
        self.separation_A = np.linspace(0, 0.5 / spacing_inv_A, N_BANDS + 1)
        band = np.minimum((separation / self.separation_A[1]).astype(np.int64), N_BANDS - 1).ravel()
        self._order = np.argsort(band, kind="stable")
        self._band_starts = np.searchsorted(band[self._order], np.arange(N_BANDS))

    def strengths(
        self, patterns: Patterns, photons: NDArray[np.float32], background: NDArray[np.float64],
        factor: NDArray[np.float32],
    ) -> NDArray[np.float32]:  # fmt: skip
        """The strongest fringe (N, J) of each band of separations, as power relative to counting noise.

        photons : (N, G) of the rings.
        background : (P,) expected photons of a shot without a particle; factor : (N,) its strength.
        """
        at_once = max(1, _PIXELS_AT_ONCE // patterns.n_pixels)
        pieces = [slice(i, i + at_once) for i in range(0, len(patterns), at_once)]
        of_rings = self.rings.sums(background[self.rings.pixels])
        behind = background[self._stored].astype(np.float32)
        signal = np.maximum(photons - factor[:, None] * of_rings, 0) / self.rings.sums(self.rings.correction)
        parts = [self._strengths(patterns[at], signal[at], behind, factor[at]) for at in pieces]
        return np.concatenate(parts) if parts else np.zeros((0, N_BANDS), dtype=np.float32)

    def _strengths(
        self, patterns: Patterns, signal: NDArray[np.floating], behind: NDArray[np.float32],
        factor: NDArray[np.float32],
    ) -> NDArray[np.float32]:  # fmt: skip
        """``strengths`` of a few hits.

        signal : (N, G) of the particle in the rings, per unit of sensitivity.
        behind : background of the pixels, sorted by cell.
        """
        from scipy.fft import rfft2

        stored = self._stored
        seen = np.nan_to_num(patterns.dense()[:, stored].astype(np.float32), copy=False)
        bright = signal.astype(np.float32)[:, self._ring] * self._correction
        expected = bright + factor[:, None] * behind
        weight = bright / np.maximum(expected, 1e-12)
        forbidden = patterns.forbidden
        if forbidden is not None:
            weight = np.where(forbidden[:, stored], np.float32(0), weight)
        noise = np.maximum((expected * weight**2).sum(axis=1), 1e-6)
        cells = np.zeros((len(seen), _CELLS * _CELLS), dtype=np.float32)
        cells[:, self._cell] = np.add.reduceat((seen - expected) * weight, self._starts, axis=1)
        waves = rfft2(cells.reshape(-1, _CELLS, _CELLS)).reshape(len(seen), -1)
        power = (waves.real**2 + waves.imag**2)[:, self._order]
        return np.asarray(
            np.maximum.reduceat(power, self._band_starts, axis=1) / noise[:, None], dtype=np.float32
        )
