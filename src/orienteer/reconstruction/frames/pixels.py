"""The pixels of a data set as a reconstruction sees them: where they are, how sensitive, for what."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orienteer.detector.masks import PixelUse
from orienteer.errors import OrienteerError, SettingsError
from orienteer.source.base import Source
from orienteer.source.wavelength import WAVELENGTH, known_wavelengths, usual_wavelength

# A spread of wavelengths above this blurs the outer speckles; it is worth a word.
_LARGEST_SPREAD = 0.01
# A resolution of more than this share of that at the edge of the data is the edge, but for rounding.
_AT_EDGE = 0.99
# Fewer pixels show no speckle.
_FEWEST_PIXELS = 16


@dataclass(frozen=True, eq=False)
class PixelTable:
    """U usable pixels, in order of the frame.

    index : (U,) int64, place in the frame.
    q_inv_A : (U, 3) float64 scattering vectors; length_inv_A : (U,) their lengths.
    correction : (U,) float64, solid angle * polarisation * efficiency, mean 1.
    merge_only : (U,) bool, not to be used for orientation.
    wavelength_A : of the data set.
    remarks : what the user should know.
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
        """Largest |q| to be reconstructed: that of this resolution, or of the outermost pixel (0)."""
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
        """A sentence where a resolution was asked for that the pixels do not reach; else empty."""
        edge_A = 1 / float(self.length_inv_A.max())
        if not resolution_A or resolution_A > _AT_EDGE * edge_A:
            return ""
        in_nm = 10 * resolution_A
        meant = f" {resolution_A:g} nm would be {in_nm:g} A." if in_nm >= _AT_EDGE * edge_A else ""
        return f"{resolution_A:g} A was asked for; the data end at {edge_A:.3g} A.{meant}"

    def choose(self, scored_inv_A: float, merged_inv_A: float) -> tuple[NDArray[np.int64], int]:
        """Places in this table: those that orient (up to a radius) first, then those that are only merged."""
        length = self.length_inv_A
        scored = (length <= scored_inv_A) & ~self.merge_only
        merged = (length <= merged_inv_A) & ~scored
        places = np.concatenate([np.flatnonzero(scored), np.flatnonzero(merged)])
        return places, int(scored.sum())


def pixel_table(source: Source) -> PixelTable:
    """The usable pixels of a source at its wavelength; says what is missing when there are none."""
    if source.n_frames == 0:
        where = source.path or "these data"
        raise OrienteerError(f"{where}: there are no frames in it.", "Look at it: orienteer inspect DATA.")
    detector = source.detector
    if detector is None:
        raise OrienteerError(
            "nobody has said where the pixels of these data are.", "Give the detector: --geometry FILE."
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
    column = source.read_columns([WAVELENGTH])[WAVELENGTH] if WAVELENGTH in source.column_names else None
    median = usual_wavelength(column)
    if median is None:
        raise OrienteerError(
            "the data do not say at which wavelength they were taken.",
            "Give it: --wavelength-A, which is 12398.42 over the photon energy in eV.",
        )
    spread = float(known_wavelengths(column).std() / median)
    if spread > _LARGEST_SPREAD:
        return median, (
            f"wavelengths vary by {spread:.1%}; all frames are taken at {median:.4g} A, which blurs speckles "
            f"further than {1 / spread:.0f} speckles from the centre.",
        )
    return median, ()
