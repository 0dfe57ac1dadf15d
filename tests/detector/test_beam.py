"""The beam by energy or wavelength, by fluence or pulse and focus."""

from dataclasses import replace

import numpy as np
import pytest

from orienteer.detector.beam import Beam
from orienteer.detector.spectrum import SaseSpectrum
from orienteer.errors import OrienteerError


def test_energy_and_wavelength_are_two_names_of_one_thing() -> None:
    # h c from the exact SI values of h, c and e.
    hc = 6.62607015e-34 * 299792458 / 1.602176634e-19 * 1e10
    assert Beam(photon_energy_eV=4600).wavelength_A == pytest.approx(hc / 4600, rel=1e-14)
    assert Beam(wavelength_A=2.0).photon_energy_eV == pytest.approx(hc / 2, rel=1e-14)


def test_fluence_per_square_angstrom() -> None:
    assert Beam(photon_energy_eV=4600, fluence_per_um2=3e12).fluence_inv_A2 == pytest.approx(3e4)


def test_the_pulse_is_the_integral_of_the_gaussian_focus() -> None:
    beam = Beam(photon_energy_eV=4600, pulse_photons=1e12, focus_fwhm_um=(0.2, 0.5))
    x, y = np.meshgrid(np.linspace(-2, 2, 801), np.linspace(-2, 2, 801))
    profile = np.exp(-4 * np.log(2) * ((x / 0.2) ** 2 + (y / 0.5) ** 2))
    assert beam.fluence_per_um2 * profile.sum() * 0.005**2 == pytest.approx(1e12, rel=1e-6)
    assert beam.pulse_photons == pytest.approx(1e12)


def test_a_focus_may_be_any_pair_or_one_width() -> None:
    pair = Beam(photon_energy_eV=4600, pulse_photons=1e12, focus_fwhm_um=(0.5, 0.5))
    for focus in (0.5, [0.5, 0.5], np.array([0.5, 0.5])):
        assert Beam(photon_energy_eV=4600, pulse_photons=1e12, focus_fwhm_um=focus) == pair


def test_a_beam_can_be_changed_by_replace() -> None:
    beam = Beam(photon_energy_eV=4600, pulse_photons=1e12, focus_fwhm_um=0.5, polarisation="y")
    harder = replace(beam, photon_energy_eV=9000.0)
    assert harder.photon_energy_eV == 9000
    assert (harder.fluence_per_um2, harder.polarisation) == (beam.fluence_per_um2, "y")


def test_spectra_come_in_electronvolts() -> None:
    generator = np.random.default_rng(0)
    energies, weights = Beam(photon_energy_eV=5000).draw_spectra(3, generator)
    assert energies.tolist() == [[5000]] * 3
    assert weights.tolist() == [[1]] * 3
    beam = Beam(photon_energy_eV=5000, spectrum=SaseSpectrum(0.01, 6))
    energies, weights = beam.draw_spectra(100, generator)
    assert energies.shape == weights.shape == (100, beam.n_lines) == (100, 6)
    assert abs(energies.mean() - 5000) < 10
    assert np.allclose(weights.sum(axis=1), 1)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"photon_energy_eV": 4600, "wavelength_A": 2.0},
        {"photon_energy_eV": 0},
        {"photon_energy_eV": "x"},
        {"photon_energy_eV": [4600, 4700]},
        {"wavelength_A": "2.0"},
        {"wavelength_A": -1},
        {"photon_energy_eV": np.nan},
        {"photon_energy_eV": 4600, "fluence_per_um2": 0},
        {"photon_energy_eV": 4600, "pulse_photons": 1e12},
        {"photon_energy_eV": 4600, "pulse_photons": 1e12, "focus_fwhm_um": 0.5, "fluence_per_um2": 1e12},
        {"photon_energy_eV": 4600, "focus_fwhm_um": 0},
        {"photon_energy_eV": 4600, "focus_fwhm_um": (1, 2, 3)},
        {"photon_energy_eV": 4600, "focus_fwhm_um": "wide"},
        {"photon_energy_eV": 4600, "polarisation": "z"},
    ],
)
def test_an_undetermined_or_impossible_beam_is_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(OrienteerError):
        Beam(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [{"wavelength_A": 2.7e-10}, {"photon_energy_eV": 4.6}])
def test_a_wavelength_in_metres_and_an_energy_in_keV_are_refused(given: dict[str, float]) -> None:
    with pytest.raises(OrienteerError, match=r"m are 2\.7 A|keV are 4600 eV"):
        Beam(**given)
