"""Settings of the beam and the detector, and the objects they describe."""

from typing import Literal

from pydantic import Field

from orienteer.detector.beam import Beam
from orienteer.detector.detector import Detector
from orienteer.detector.opening import open_detector
from orienteer.detector.spectrum import SaseSpectrum
from orienteer.detector.square import square_detector
from orienteer.settings.section import Section


class BeamSettings(Section):
    """The X-ray beam."""

    photon_energy_eV: float = Field(4600.0, gt=10, le=1e6, description="Mean photon energy in eV.")
    fluence_per_um2: float = Field(
        1e12, gt=0, le=1e20, description="Photons per square micrometre at the particle."
    )
    polarisation: Literal["x", "y", "none"] = Field(
        "x", description="Direction of the electric field; none is unpolarised."
    )
    bandwidth: float = Field(
        0.0, ge=0, le=0.2, description="Relative full width of the SASE spectrum; 0 is monochromatic."
    )
    spikes: int = Field(8, ge=1, le=1000, description="Spikes in the SASE spectrum of one shot.")


class DetectorSettings(Section):
    """The detector: a geometry file, or a square of pixels centred on the beam."""

    geometry: str = Field(
        "", description="Geometry file (.geom, Dragonfly, Orienteer); empty for a square detector."
    )
    pixels: int = Field(128, ge=2, le=5792, description="Pixels along each side of the square detector.")
    pixel_size_m: float = Field(0.000625, gt=1e-8, le=1, description="Edge of a pixel in metres.")
    distance_m: float = Field(
        0.2,
        gt=1e-4,
        le=1000,
        description="Distance from the sample in metres; also for a geometry file that leaves it open.",
    )
    edge_resolution_A: float = Field(
        0.0,
        ge=0,
        le=1e5,
        description="Resolution in A at the middle of a side, which sets the pixel size; 0: not used.",
    )
    beam_stop_radius_pixels: float = Field(
        0.0, ge=0, le=5792, description="Pixels nearer to the beam than this are never used."
    )
    corners: Literal["orient", "merge_only"] = Field(
        "orient", description="Whether pixels beyond the half width may decide on orientations."
    )


def beam_from_settings(settings: BeamSettings) -> Beam:
    """The beam that the settings describe."""
    return Beam(
        photon_energy_eV=settings.photon_energy_eV,
        fluence_per_um2=settings.fluence_per_um2,
        polarisation=settings.polarisation,
        spectrum=SaseSpectrum(settings.bandwidth, settings.spikes) if settings.bandwidth > 0 else None,
    )


def detector_from_settings(settings: DetectorSettings, wavelength_A: float | None = None) -> Detector:
    """The detector that the settings describe.

    wavelength_A : of the beam; needed with ``edge_resolution_A``.

    >>> detector_from_settings(DetectorSettings())
    <Detector 'square': 1 panel, frame (128, 128), 16384 of 16384 pixels used, 0.2 m from the sample>
    """
    if settings.geometry:
        # Only what the file leaves open is taken from the settings, so a distance of its own stays.
        given = settings.model_fields_set
        return open_detector(
            settings.geometry,
            wavelength_A=wavelength_A,
            distance_m=settings.distance_m if "distance_m" in given else None,
            pixel_size_m=settings.pixel_size_m if "pixel_size_m" in given else None,
        )
    by_edge = settings.edge_resolution_A > 0
    return square_detector(
        settings.pixels,
        pixel_size_m=None if by_edge else settings.pixel_size_m,
        distance_m=settings.distance_m,
        edge_resolution_A=settings.edge_resolution_A if by_edge else None,
        wavelength_A=wavelength_A,
        beam_stop_radius_pixels=settings.beam_stop_radius_pixels,
        corners=settings.corners,
    )
