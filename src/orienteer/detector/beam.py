"""Beam: the X-rays that meet the particle."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, pi
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.words import counted
from orienteer.detector.detector import POLARISATIONS, Polarisation
from orienteer.detector.spectrum import SpectrumLike
from orienteer.errors import OrienteerError
from orienteer.settings.units import HC_EV_A as HC_EV_A
from orienteer.settings.units import check_unit

A2_PER_UM2 = 1e8


def wavelength_from_energy_A(photon_energy_eV: float) -> float:
    """Wavelength in Å of photons of an energy in eV; the inverse is the same formula.

    >>> round(wavelength_from_energy_A(4600), 7)
    2.6953087
    """
    return HC_EV_A / photon_energy_eV


@dataclass(frozen=True, init=False, repr=False)
class Beam:
    """Photons along +z.

    photon_energy_eV or wavelength_A : exactly one of the two.
    fluence_per_um2 : photons per square micrometre at the particle; by default 1e12.
    pulse_photons : N, instead of the fluence and together with ``focus_fwhm_um``: the fluence is then that at
        the centre of a Gaussian focus, 4 ln 2 N / (π FWHM_x FWHM_y).
    focus_fwhm_um : full width at half maximum, one number or (x, y).  It only sets the fluence: every
        particle sits at the peak of the focus.
    polarisation : direction of the electric field, "x", "y", or "none" for unpolarised.
    spectrum : :class:`~orienteer.detector.spectrum.Spectrum`, ``SaseSpectrum`` or None for one line.

    >>> round(Beam(wavelength_A=1.0).photon_energy_eV, 6)
    12398.419843
    >>> Beam(photon_energy_eV=4600)
    <Beam: 4600 eV (2.695 A), 1e+12 photons/um2, field along x>
    """

    photon_energy_eV: float
    fluence_per_um2: float
    polarisation: Polarisation
    spectrum: SpectrumLike | None
    focus_fwhm_um: tuple[float, float] | None

    def __init__(
        self,
        photon_energy_eV: float | None = None,
        fluence_per_um2: float | None = None,
        polarisation: Polarisation = "x",
        spectrum: SpectrumLike | None = None,
        focus_fwhm_um: float | Sequence[float] | None = None,
        *,
        wavelength_A: float | None = None,
        pulse_photons: float | None = None,
    ) -> None:
        if (photon_energy_eV is None) == (wavelength_A is None):
            raise OrienteerError(
                f"photon_energy_eV is {photon_energy_eV} and wavelength_A is {wavelength_A}.",
                "Give one of the two.",
            )
        if wavelength_A is not None:
            photon_energy_eV = wavelength_from_energy_A(_positive("wavelength_A", wavelength_A))
        if polarisation not in POLARISATIONS:
            raise OrienteerError(f"polarisation '{polarisation}' is not one of {', '.join(POLARISATIONS)}.")
        if focus_fwhm_um is not None:
            focus_fwhm_um = _both_widths(focus_fwhm_um)
        if pulse_photons is not None:
            if fluence_per_um2 is not None or focus_fwhm_um is None:
                raise OrienteerError(
                    f"pulse_photons is {pulse_photons}, fluence_per_um2 is {fluence_per_um2} "
                    f"and focus_fwhm_um is {focus_fwhm_um}.",
                    "Give pulse_photons with focus_fwhm_um, or fluence_per_um2 alone.",
                )
            fluence_per_um2 = _positive("pulse_photons", pulse_photons) / _focus_area_um2(focus_fwhm_um)
        values = {
            "photon_energy_eV": _positive("photon_energy_eV", photon_energy_eV),
            "fluence_per_um2": _positive(
                "fluence_per_um2", 1e12 if fluence_per_um2 is None else fluence_per_um2
            ),
            "polarisation": polarisation,
            "spectrum": spectrum,
            "focus_fwhm_um": focus_fwhm_um,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        field = "unpolarised" if self.polarisation == "none" else f"field along {self.polarisation}"
        fluence = f"{self.fluence_per_um2:g} photons/um2"
        lines = "" if self.spectrum is None else f", {counted(self.n_lines, 'spectral line')}"
        return (
            f"<Beam: {self.photon_energy_eV:.6g} eV ({self.wavelength_A:.4g} A), {fluence}, {field}{lines}>"
        )

    @property
    def wavelength_A(self) -> float:
        """Wavelength in Å at the mean photon energy."""
        return wavelength_from_energy_A(self.photon_energy_eV)

    @property
    def fluence_inv_A2(self) -> float:
        """Photons per Å² at the particle.

        >>> Beam(photon_energy_eV=4600, fluence_per_um2=1e12).fluence_inv_A2
        10000.0
        """
        return self.fluence_per_um2 / A2_PER_UM2

    @property
    def pulse_photons(self) -> float | None:
        """Photons in a pulse; None if the focus is not known."""
        return (
            None if self.focus_fwhm_um is None else self.fluence_per_um2 * _focus_area_um2(self.focus_fwhm_um)
        )

    @property
    def n_lines(self) -> int:
        """L, the number of spectral lines in a shot."""
        return 1 if self.spectrum is None else self.spectrum.n_lines

    def draw_spectra(
        self, n_shots: int, generator: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Photon energies (N, L) in eV and weights (N, L), each row summing to 1, of N shots."""
        if self.spectrum is None:
            return np.full((n_shots, 1), self.photon_energy_eV), np.ones((n_shots, 1))
        energies, weights = self.spectrum.draw(n_shots, generator)
        return energies * self.photon_energy_eV, weights


def _focus_area_um2(focus_fwhm_um: tuple[float, float]) -> float:
    """Area that, times the peak fluence of a Gaussian focus, gives the photons of the pulse."""
    return pi * focus_fwhm_um[0] * focus_fwhm_um[1] / (4 * log(2))


def _both_widths(focus_fwhm_um: float | Sequence[float]) -> tuple[float, float]:
    """Widths along x and y, from one number or two."""
    try:
        widths = np.atleast_1d(np.asarray(focus_fwhm_um, dtype=np.float64))
    except (TypeError, ValueError):
        widths = np.empty(0)
    if widths.shape not in ((1,), (2,)):
        raise OrienteerError(f"focus_fwhm_um is {focus_fwhm_um}; expected one or two widths.")
    return _positive("focus_fwhm_um", widths[0]), _positive("focus_fwhm_um", widths[-1])


def _positive(name: str, value: Any) -> float:
    try:
        number = np.nan if value is None or isinstance(value, str) else float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not 0 < number < np.inf:
        raise OrienteerError(f"{name} is {value!r}; expected a positive number.")
    return check_unit(name, number)
