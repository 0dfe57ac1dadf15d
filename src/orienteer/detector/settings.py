"""Settings of the beam and the detector, and the objects they describe."""

from typing import Any, Literal, Self

import numpy as np
from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from orienteer.detector.beam import Beam, wavelength_from_energy_A
from orienteer.detector.detector import Detector
from orienteer.detector.opening import open_detector
from orienteer.detector.spectrum import SaseSpectrum, Spectrum, SpectrumLike
from orienteer.detector.square import square_detector
from orienteer.settings.section import Section


class BeamSettings(Section):
    """The X-ray beam: its energy or wavelength, its fluence or its pulse and focus, and its spectrum."""

    photon_energy_eV: float = Field(
        4600.0, gt=10, le=1e6, description="Mean photon energy in eV; or give wavelength_A."
    )
    wavelength_A: float = Field(
        0.0, ge=0, le=1239, description="Wavelength in A instead of the photon energy; 0: not used."
    )
    fluence_per_um2: float = Field(
        1e12,
        gt=0,
        le=1e20,
        description="Photons per square micrometre at the particle; or give pulse_photons.",
    )
    pulse_photons: float = Field(
        0.0,
        ge=0,
        le=1e20,
        description="Photons in a pulse; needs focus_fwhm_um and replaces the fluence; 0: not used.",
    )
    focus_fwhm_um: tuple[float, ...] = Field(
        (),
        description="Full width at half maximum of the focus in um, one number or [x, y]; it only sets the "
        "fluence: every particle sits at the peak of the focus.",
    )
    polarisation: Literal["x", "y", "none"] = Field(
        "x", description="Direction of the electric field; none is unpolarised."
    )
    bandwidth: float = Field(
        0.0, ge=0, le=0.2, description="Relative full width of the SASE spectrum; 0 is monochromatic."
    )
    spikes: int = Field(8, ge=1, le=1000, description="Spikes in the SASE spectrum of one shot.")
    line_energies_eV: tuple[float, ...] = Field(
        (),
        max_length=1000,
        description="Photon energies in eV of a spectrum of fixed lines, instead of bandwidth; "
        "their mean is the photon energy unless that is given.",
    )
    line_weights: tuple[float, ...] = Field(
        (), description="Share of the photons in each of these lines; empty: equal shares."
    )

    @field_validator("focus_fwhm_um", mode="before")
    @classmethod
    def _one_width_or_two(cls, given: Any) -> Any:
        widths = tuple(given) if isinstance(given, (list, tuple)) else (given,)
        numbers = all(isinstance(w, (int, float)) and 0 < w < 1e6 for w in widths)
        if len(widths) > 2 or not numbers:
            raise ValueError(f"focus_fwhm_um is {given!r}, expected one or two positive widths in um")
        return widths

    @model_validator(mode="after")
    def _everything_said_once(self) -> Self:
        if self.wavelength_A > 0 and "photon_energy_eV" in self.model_fields_set:
            raise ValueError(
                f"photon_energy_eV = {self.photon_energy_eV:g} and wavelength_A = {self.wavelength_A:g} "
                "are both given; leave one out"
            )
        if 0 < self.wavelength_A < 0.0124:
            raise ValueError(f"wavelength_A = {self.wavelength_A:g} is not in the range 0.0124 to 1239 A")
        if self.pulse_photons > 0 and "fluence_per_um2" in self.model_fields_set:
            raise ValueError(
                f"fluence_per_um2 = {self.fluence_per_um2:g} and pulse_photons = {self.pulse_photons:g} "
                "are both given; leave one out"
            )
        if self.pulse_photons > 0 and not self.focus_fwhm_um:
            raise ValueError(f"pulse_photons = {self.pulse_photons:g} needs focus_fwhm_um for the fluence")
        if self.focus_fwhm_um and self.pulse_photons == 0:
            raise ValueError("focus_fwhm_um sets the fluence only with pulse_photons; give both")
        return self

    @model_validator(mode="after")
    def _lines_make_a_spectrum(self) -> Self:
        energies, weights = self.line_energies_eV, self.line_weights
        if not energies and weights:
            raise ValueError("line_weights need line_energies_eV; give both")
        if weights and len(weights) != len(energies):
            raise ValueError(f"there are {len(weights)} line_weights for {len(energies)} line_energies_eV")
        if wrong := [energy for energy in energies if not 10 < energy <= 1e6]:
            raise ValueError(f"line_energies_eV holds {wrong[0]:g}, which is not between 10 and 1e6 eV")
        if weights and not (all(0 <= weight < 1e300 for weight in weights) and sum(weights) > 0):
            raise ValueError(f"line_weights {list(weights)} must be numbers, not negative and not all zero")
        if energies and self.bandwidth > 0:
            raise ValueError(
                f"bandwidth = {self.bandwidth:g} and line_energies_eV are both given; leave one out"
            )
        return self

    @model_serializer(mode="wrap")
    def _only_what_counts(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Write only the one in use of two settings that exclude each other, so that it can be read again."""
        written: dict[str, Any] = write(self)
        by_lines = bool(self.line_energies_eV) and "photon_energy_eV" not in self.model_fields_set
        if self.wavelength_A > 0 or by_lines:
            written.pop("photon_energy_eV", None)
        if self.pulse_photons > 0:
            written.pop("fluence_per_um2", None)
        return written


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
        description="Distance from the sample in metres; also for a geometry file that does not state it.",
    )
    edge_resolution_A: float = Field(
        0.0,
        ge=0,
        le=1e5,
        description="Resolution in A at the middle of a side, which sets the pixel size; 0: not used.",
    )
    beam_stop_radius_pixels: float = Field(
        0.0, ge=0, le=5792, description="Pixels closer to the beam than this are never used."
    )
    corners: Literal["orient", "merge_only"] = Field(
        "orient", description="Whether pixels beyond the half width are used to orient, or only merged."
    )


def beam_from_settings(settings: BeamSettings) -> Beam:
    """The beam that the settings describe.

    >>> beam_from_settings(BeamSettings(wavelength_A=2.0)).photon_energy_eV  # doctest: +ELLIPSIS
    6199.2...
    """
    photon_energy_eV = settings.photon_energy_eV
    if settings.wavelength_A > 0:  # one formula serves both ways
        photon_energy_eV = wavelength_from_energy_A(settings.wavelength_A)
    elif settings.line_energies_eV and "photon_energy_eV" not in settings.model_fields_set:
        photon_energy_eV = float(np.average(settings.line_energies_eV, weights=settings.line_weights or None))
    by_pulse = settings.pulse_photons > 0
    return Beam(
        photon_energy_eV=photon_energy_eV,
        fluence_per_um2=None if by_pulse else settings.fluence_per_um2,
        polarisation=settings.polarisation,
        spectrum=_spectrum(settings, photon_energy_eV),
        focus_fwhm_um=settings.focus_fwhm_um if by_pulse else None,
        pulse_photons=settings.pulse_photons if by_pulse else None,
    )


def _spectrum(settings: BeamSettings, photon_energy_eV: float) -> SpectrumLike | None:
    if settings.line_energies_eV:
        relative = [energy / photon_energy_eV for energy in settings.line_energies_eV]
        return Spectrum(relative, settings.line_weights or [1.0] * len(relative))
    return SaseSpectrum(settings.bandwidth, settings.spikes) if settings.bandwidth > 0 else None


def detector_from_settings(settings: DetectorSettings, wavelength_A: float | None = None) -> Detector:
    """The detector that the settings describe.

    wavelength_A : of the beam; needed with ``edge_resolution_A``.

    >>> detector_from_settings(DetectorSettings())
    <Detector 'square': 1 panel, frame (128, 128), 16384 of 16384 pixels used, 0.2 m from the sample>
    """
    if settings.geometry:
        # Pass only what the user has set: a default must not override what the file states.
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
