"""Summary of a data set: the numbers that a person asks for first."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.detector.detector import Detector
from orienteer.detector.masks import PixelUse
from orienteer.source.base import Source
from orienteer.source.patterns import Patterns, SparsePhotons
from orienteer.source.wavelength import WAVELENGTH, Wavelengths, wavelengths_of

# Fields that a reconstruction needs, and what to say if one is missing.
WANTED = {
    "detector": "no geometry in the file; give --geometry FILE",
    "wavelength_A": "no wavelength in the file; give --wavelength-A",
    "mask": "no pixel is masked; is there really no beam stop and no bad pixel?",
    "pixels": "every pixel is masked; give a geometry whose mask leaves some",
}


@dataclass(frozen=True, eq=False)
class Summary:
    """Sums over the M frames that were looked at, of N in the file, with P pixels each.

    photons : (M,) float64, counts of each frame in pixels that neither mask nor ``frame_mask`` forbids.
    lit_pixels : (M,) int64, such pixels with at least one photon.
    total : (P,) float64, sum of the frames over such pixels.
    wavelength_A : as given, or the median over the frames; None if unknown.
    missing : what the data lack, by the keys of ``WANTED``, and what to say about it.
    """

    source: Source
    photons: NDArray[np.float64]
    lit_pixels: NDArray[np.int64]
    total: NDArray[np.float64]
    examples: Patterns
    wavelength_A: float | None
    missing: Mapping[str, str]

    def as_report(self) -> dict[str, Any]:
        """Plain values for ``--json``; an entry is empty if the file does not say."""
        source, detector, wavelength = self.source, self.source.detector, self.wavelength_A
        edge_A, corner_A = _resolution(detector, wavelength)
        counts, edges = np.histogram(self.lit_pixels, bins=10)
        return {
            "path": str(source.path) if source.path else None,
            "format": source.format,
            "frames": len(source),
            "frames_looked_at": len(self.photons),
            "frame_shape": list(source.frame_shape),
            "pixels": source.n_pixels,
            "storage": "photon lists" if source.is_sparse else "dense frames",
            "photons_per_frame": _statistics(self.photons),
            "lit_pixels_per_frame": _statistics(self.lit_pixels),
            "lit_pixels_histogram": {"edges": edges.tolist(), "frames": counts.tolist()},
            "mask": _mask_counts(source.mask if detector is None else detector.mask),
            "polarisation": source.polarisation,
            "wavelength_A": wavelength,
            "resolution_edge_A": edge_A,
            "resolution_corner_A": corner_A,
            "columns": list(source.column_names),
            "missing": dict(self.missing),
        }


def blocks_to_look_at(n_frames: int, n_wanted: int, block: int = 256) -> list[slice]:
    """Slices of neighbouring frames, spread evenly over the data set, ``n_wanted`` frames in all.

    >>> blocks_to_look_at(10, 4, block=2)
    [slice(0, 2, None), slice(5, 7, None)]
    """
    n_wanted = min(n_wanted, n_frames)
    n_blocks = -(-n_wanted // block)
    lengths = [(i + 1) * n_wanted // n_blocks - i * n_wanted // n_blocks for i in range(n_blocks)]
    starts = [i * n_frames // n_blocks for i in range(n_blocks)]
    return [slice(start, start + length) for start, length in zip(starts, lengths, strict=True)]


def summarise(source: Source, batches: Iterator[Patterns], wavelength_A: float | None = None) -> Summary:
    """Read the batches once and keep the sums; memory is one batch and a few numbers per frame."""
    mask = source.mask if source.detector is None else source.detector.mask
    used = np.ones(source.n_pixels, bool) if mask is None else mask != PixelUse.NEVER
    photons, lit, wavelengths = [], [], []
    total = np.zeros(source.n_pixels)
    examples: Patterns | None = None
    for batch in batches:
        allowed = batch.without_forbidden(~used)
        examples = examples if examples is not None else allowed
        counts, n_lit, added = _count(allowed)
        photons.append(counts)
        lit.append(n_lit)
        total += added
        if WAVELENGTH in batch.columns:
            wavelengths.append(batch.columns[WAVELENGTH])
    told = wavelengths_of(np.concatenate(wavelengths) if wavelengths and wavelength_A is None else None)
    if not told.problem:
        wavelength_A = wavelength_A or told.usual_A
    missing = {
        "detector": source.detector is None,
        "wavelength_A": wavelength_A is None,
        "mask": (source.detector is not None or mask is not None) and bool(used.all()),
        "pixels": not used.any(),
    }
    return Summary(
        source=source,
        photons=np.concatenate(photons) if photons else np.zeros(0),
        lit_pixels=np.concatenate(lit) if lit else np.zeros(0, np.int64),
        total=total,
        examples=examples if examples is not None else source.read(slice(0, 0)),
        wavelength_A=wavelength_A,
        missing={name: WANTED[name] for name, absent in missing.items() if absent} | _about(told),
    )


def _about(told: Wavelengths) -> dict[str, str]:
    """What to say about the wavelengths in the data."""
    words = f"{told.problem} {told.remedy}" if told.problem else told.words_on_unknown
    return {WAVELENGTH: words} if words else {}


def _count(batch: Patterns) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Photons (N,) and lit pixels (N,) of each frame, and the sum of the frames (P,)."""
    if isinstance(batch.frames, SparsePhotons):
        photons = batch.frames
        total = np.bincount(photons.pixel, photons.count, minlength=batch.n_pixels)
        return photons.photons, np.diff(photons.start), total.astype(np.float64)
    frames = np.nan_to_num(np.asarray(batch.frames, np.float64))
    return frames.sum(1), (frames >= 0.5).sum(1), frames.sum(0)


def radial_profile(
    values: NDArray[np.float64], detector: Detector, wavelength_A: float | None, n_shells: int = 100
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean of (P,) values over shells of |q| (of 2 sin theta, without a wavelength), masked pixels left out.

    Returns shell centres (S,) in 1/A (or pure numbers) and means (S,); shells without pixels are NaN.
    """
    length = np.linalg.norm(detector.ewald_vectors, axis=1) / (wavelength_A or 1.0)
    used = detector.mask != PixelUse.NEVER
    edges = np.linspace(0.0, length[used].max() * (1 + 1e-9) if used.any() else 1.0, n_shells + 1)
    shell = np.digitize(length[used], edges) - 1
    pixels = np.bincount(shell, minlength=n_shells)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.bincount(shell, values[used], minlength=n_shells) / pixels
    return (edges[1:] + edges[:-1]) / 2, means


def _statistics(values: NDArray[Any]) -> dict[str, float]:
    if not len(values):
        return {}
    return {
        "mean": float(values.mean()),
        "median": float(np.median(values)),
        "min": float(values.min()),
        "max": float(values.max()),
    }


def _mask_counts(mask: NDArray[np.uint8] | None) -> dict[str, int]:
    return {} if mask is None else {use.name.lower(): int((mask == use).sum()) for use in PixelUse}


def _resolution(detector: Detector | None, wavelength_A: float | None) -> tuple[float | None, float | None]:
    if detector is None or wavelength_A is None:
        return None, None
    return detector.edge_resolution_A(wavelength_A), detector.corner_resolution_A(wavelength_A)
