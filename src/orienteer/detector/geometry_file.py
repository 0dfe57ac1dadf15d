"""GeometryFile: what a geometry file says beyond the pixels themselves."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from orienteer.detector.crystfel_masks import MaskReference
from orienteer.detector.detector import Detector, Polarisation


@dataclass(frozen=True)
class GeometryFile:
    """A detector and what its file tells about the experiment.

    The :class:`Detector` itself stays free of beam and data: those belong to the events.

    detector : the pixels, with the masks that the geometry file itself holds or names.
    wavelength_A : of events that carry none; None where the file does not say.
    polarisation : of the beam, where the file's corrections tell it.
    masks_in_data : mask arrays that lie inside the data files.
    adu_per_photon : by panel, where stated.
    """

    detector: Detector
    wavelength_A: float | None = None
    polarisation: Polarisation | None = None
    masks_in_data: tuple[MaskReference, ...] = ()
    adu_per_photon: Mapping[str, float] = field(default_factory=dict)
