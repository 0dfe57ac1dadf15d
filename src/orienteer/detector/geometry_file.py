"""GeometryFile: a detector and what else its geometry file states."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from orienteer.detector.crystfel_masks import MaskReference
from orienteer.detector.detector import Detector, Polarisation


@dataclass(frozen=True)
class GeometryFile:
    """A detector and what its file states about the experiment.

    The :class:`Detector` itself holds nothing about beam or data, which can change from event to event.

    detector : the pixels, with the masks that the geometry file itself holds or names.
    wavelength_A : for events that carry no wavelength; None if the file states none.
    polarisation : of the beam, if the file names it or its corrections reveal it; else None.
    masks_in_data : mask arrays that lie inside the data files.
    adu_per_photon : by panel name, for the panels that state it.
    """

    detector: Detector
    wavelength_A: float | None = None
    polarisation: Polarisation | None = None
    masks_in_data: tuple[MaskReference, ...] = ()
    adu_per_photon: Mapping[str, float] = field(default_factory=dict)
