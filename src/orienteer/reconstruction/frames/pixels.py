"""The pixels of a data set as a reconstruction uses them: positions, corrections, permitted use."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orienteer.detector.masks import PixelUse
from orienteer.errors import OrienteerError, SettingsError
from orienteer.source.base import Source
from orienteer.source.wavelength import wavelengths_in

# A relative spread of wavelengths above this blurs the outer speckles, and is mentioned.
_LARGEST_SPREAD = 0.01
# A resolution above this share of that at the edge of the data counts as the edge itself, up to rounding.
_AT_EDGE = 0.99
# Fewer pixels would show no speckle.
_FEWEST_PIXELS = 16


@dataclass(frozen=True, eq=False)
class PixelTable:
    """U usable pixels, in order of the frame.

    index : (U,) int64, place in the frame.
    q_inv_A : (U, 3) float64 scattering vectors; length_inv_A : (U,) their lengths.
    correction : (U,) float64, solid angle * polarisation * efficiency, mean 1.
    merge_only : (U,) bool, pixels that are merged but do not orient frames.
    wavelength_A : of the data set.
    remarks : for the user.
    """

    index: NDArray[np.int64]
    q_inv_A: NDArray[np.float64]
    length_inv_A: NDArray[np.float64]
    correction: NDArray[np.float64]
    merge_only: NDArray[np.bool_]
    wavelength_A: float
    remarks: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.index)

    @property
    def spacing_inv_A(self) -> float:
        """Typical distance between neighbouring pixels in reciprocal space."""
        from scipy.spatial import KDTree

        sample = self.q_inv_A[:: max(1, len(self) // 2000)]
        distances, _ = KDTree(self.q_inv_A).query(sample, k=min(2, len(self)))
        return float(np.median(np.atleast_2d(distances)[:, -1]))

    def edge_inv_A(self, resolution_A: float) -> float:
        """Largest |q| to be reconstructed: that of this resolution, or (0) of the outermost pixel."""
        edge = float(self.length_inv_A.max())
        if not resolution_A:
            return edge
        n_left = int(((self.length_inv_A <= 1 / resolution_A) & ~self.merge_only).sum())
        if n_left < _FEWEST_PIXELS:
            nearest = max(float(self.length_inv_A.min()), 1e-9)
            raise SettingsError(
                f"resolution_A = {resolution_A:g} leaves {n_left or 'no'} pixels that could orient a frame.",
                f"The pixels reach from {1 / nearest:.3g} A to {1 / edge:.3g} A.",
            )
        return min(edge, 1 / resolution_A)

    def beyond_edge(self, resolution_A: float) -> str:
        """A sentence if the pixels do not reach the requested resolution; else empty."""
        edge_A = 1 / float(self.length_inv_A.max())
        if not resolution_A or resolution_A > _AT_EDGE * edge_A:
            return ""
        in_nm = 10 * resolution_A
        meant = f" {resolution_A:g} nm would be {in_nm:g} A." if in_nm >= _AT_EDGE * edge_A else ""
        return f"{resolution_A:g} A was asked for; the data end at {edge_A:.3g} A.{meant}"

    def choose(self, scored_inv_A: float, merged_inv_A: float) -> tuple[NDArray[np.int64], int]:
        """Places of the pixels in use: first those that orient, up to a radius, then those only merged.

        Returns the places, and how many of them orient.
        """
        length = self.length_inv_A
        scored = (length <= scored_inv_A) & ~self.merge_only
        merged = (length <= merged_inv_A) & ~scored
        places = np.concatenate([np.flatnonzero(scored), np.flatnonzero(merged)])
        return places, int(scored.sum())


def pixel_table(source: Source) -> PixelTable:
    """The usable pixels of a source at its wavelength; raises an error that says what is missing."""
    if source.n_frames == 0:
        where = source.path or "these data"
        raise OrienteerError(f"{where}: there are no frames in it.", "Look at it: orienteer inspect DATA.")
    detector = source.detector
    if detector is None:
        raise OrienteerError(
            "these data do not say where their pixels are.", "Give the detector: --geometry FILE."
        )
    wavelength, remarks = _wavelength(source)
    mask = np.asarray(detector.mask)
    correction = np.asarray(detector.correction(source.polarisation or "x"), dtype=np.float64)
    usable = (mask < PixelUse.NEVER) & (correction > 0)
    index = np.flatnonzero(usable)
    merge_only = mask[index] == PixelUse.MERGE_ONLY
    n_orienting = int((~merge_only).sum())
    if n_orienting < _FEWEST_PIXELS:
        raise OrienteerError(
            f"the mask leaves {n_orienting or 'no'} pixels that could orient a frame.",
            "Look at the mask with: orienteer inspect DATA. Level 0 orients and merges, 1 only merges.",
        )
    q = detector.q_inv_A(wavelength)[index]
    return PixelTable(
        index, q, np.linalg.norm(q, axis=1), correction[index] / correction[index].mean(), merge_only,
        wavelength, remarks,
    )  # fmt: skip


def _wavelength(source: Source) -> tuple[float, tuple[str, ...]]:
    found = wavelengths_in(source).checked()
    usual_A = found.usual_A
    if usual_A is None:
        raise OrienteerError(
            "the data do not say at which wavelength they were recorded.",
            "Give it: --wavelength-A, which is 12398.42 over the photon energy in eV.",
        )
    remarks = [found.words_on_unknown]
    spread = float(found.known.std() / usual_A)
    if spread > _LARGEST_SPREAD:
        remarks.append(
            f"wavelengths vary by {spread:.1%}; all frames are taken at {usual_A:.4g} A, which blurs "
            f"speckles further than {1 / spread:.0f} speckles from the centre."
        )
    return usual_A, tuple(remark for remark in remarks if remark)
