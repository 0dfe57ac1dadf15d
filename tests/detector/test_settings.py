"""The settings make the beam and the detector that they describe."""

from pathlib import Path

import numpy as np
import pytest

from orienteer.detector.beam import Beam
from orienteer.detector.resolution import corner_resolution_A, edge_resolution_A
from orienteer.detector.settings import (
    BeamSettings,
    DetectorSettings,
    beam_from_settings,
    detector_from_settings,
)
from orienteer.detector.spectrum import SaseSpectrum
from orienteer.errors import OrienteerError, SettingsError
from orienteer.settings.loading import load_settings
from orienteer.settings.section import Section

STACKED_GEOM = (Path(__file__).parent / "data" / "stacked.geom").read_text()


class BeamFile(Section):
    """A settings file that holds a beam only."""

    beam: BeamSettings = BeamSettings()


def test_the_defaults_are_the_square_detector_of_the_spinifel_runs() -> None:
    beam, detector = beam_from_settings(BeamSettings()), detector_from_settings(DetectorSettings())
    assert detector.frame_shape == (128, 128)
    assert np.ptp(detector.panels[0].corners_m()[:, 0]) == pytest.approx(0.08)
    # SpiniFEL's voxel of half the corner resolution is 4.94 A there.
    assert corner_resolution_A(detector, beam.wavelength_A) == pytest.approx(2 * 4.94, rel=2e-3)
    assert beam.spectrum is None


def test_an_edge_resolution_sets_the_pixel_size() -> None:
    wavelength = beam_from_settings(BeamSettings()).wavelength_A
    detector = detector_from_settings(DetectorSettings(edge_resolution_A=12), wavelength)
    assert edge_resolution_A(detector, wavelength) == pytest.approx(12)
    assert detector.distance_m == 0.2
    with pytest.raises(OrienteerError, match="wavelength"):
        detector_from_settings(DetectorSettings(edge_resolution_A=12))


def test_a_bandwidth_makes_a_sase_spectrum() -> None:
    beam = beam_from_settings(BeamSettings(bandwidth=0.004, spikes=5, polarisation="y"))
    assert beam.spectrum == SaseSpectrum(0.004, 5)
    assert beam.polarisation == "y"


def test_a_wavelength_may_stand_for_the_photon_energy() -> None:
    assert beam_from_settings(BeamSettings(wavelength_A=2.0)).wavelength_A == pytest.approx(2.0, rel=1e-14)
    assert beam_from_settings(BeamSettings(photon_energy_eV=9000, wavelength_A=0)).photon_energy_eV == 9000


@pytest.mark.parametrize(
    ("focus", "widths"), [(0.3, (0.3, 0.3)), ([0.3], (0.3, 0.3)), ([0.2, 0.5], (0.2, 0.5))]
)
def test_a_pulse_and_its_focus_set_the_fluence_and_nothing_else(
    focus: object, widths: tuple[float, float]
) -> None:
    beam = beam_from_settings(BeamSettings(pulse_photons=1e12, focus_fwhm_um=focus))  # type: ignore[arg-type]
    assert beam == Beam(4600.0, pulse_photons=1e12, focus_fwhm_um=widths)
    peak = 1e12 * 4 * np.log(2) / (np.pi * widths[0] * widths[1])
    assert beam.fluence_per_um2 == pytest.approx(peak)


def test_fixed_lines_keep_their_energies_and_shares() -> None:
    settings = BeamSettings(photon_energy_eV=7000, line_energies_eV=(7000, 7050), line_weights=(3, 1))
    energies, weights = beam_from_settings(settings).draw_spectra(2, np.random.default_rng(0))
    np.testing.assert_allclose(energies, [[7000, 7050]] * 2, rtol=1e-14)
    np.testing.assert_allclose(weights, [[0.75, 0.25]] * 2)
    assert beam_from_settings(settings).photon_energy_eV == 7000


def test_lines_alone_say_the_photon_energy_too() -> None:
    beam = beam_from_settings(BeamSettings(line_energies_eV=(7000, 7100), line_weights=(1, 3)))
    assert beam.photon_energy_eV == pytest.approx(7075)
    alike = beam_from_settings(BeamSettings(wavelength_A=2.0, line_energies_eV=(6000, 6400)))
    assert alike.wavelength_A == pytest.approx(2.0)
    np.testing.assert_allclose(alike.draw_spectra(1, np.random.default_rng(0))[1], [[0.5, 0.5]])


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"photon_energy_eV": 4600, "wavelength_A": 2.0}, "photon_energy_eV = 4600 and wavelength_A = 2 "),
        ({"wavelength_A": 1e-5}, "wavelength_A = 1e-05 .* 0.0124 to 1239 A"),
        ({"fluence_per_um2": 1e12, "pulse_photons": 1e11, "focus_fwhm_um": 1}, "both given"),
        ({"pulse_photons": 1e11}, "pulse_photons = 1e.11 needs focus_fwhm_um"),
        ({"focus_fwhm_um": 0.5}, "focus_fwhm_um sets the fluence only with pulse_photons"),
        ({"pulse_photons": 1e11, "focus_fwhm_um": (1, 2, 3)}, "focus_fwhm_um .* one or two positive widths"),
        ({"pulse_photons": 1e11, "focus_fwhm_um": (1, -2)}, "focus_fwhm_um .* one or two positive widths"),
        ({"line_weights": (1, 2)}, "line_weights need line_energies_eV"),
        ({"line_energies_eV": (7000,), "line_weights": (1, 2)}, "2 line_weights for 1 line_energies_eV"),
        ({"line_energies_eV": (7000, 7.1)}, "line_energies_eV holds 7.1, .* eV"),
        ({"line_energies_eV": (7000, float("nan"))}, "line_energies_eV .* nan"),
        ({"line_energies_eV": (7000, 7001), "line_weights": (0, 0)}, "line_weights .* not all zero"),
        ({"line_energies_eV": (7000, 7001), "line_weights": (-1, 2)}, "line_weights .* not negative"),
        ({"line_energies_eV": (7000, 7001), "bandwidth": 0.01}, "bandwidth = 0.01 and line_energies_eV"),
    ],
)  # fmt: skip
def test_a_beam_said_twice_or_by_half_is_refused_in_words(values: dict[str, object], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        BeamSettings(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"photon_energy_eV": 9000, "fluence_per_um2": 1e10},
        {"wavelength_A": 2.0, "pulse_photons": 1e11, "focus_fwhm_um": 0.4},
        {"line_energies_eV": (7000, 7100), "line_weights": (1, 3)},
        {"photon_energy_eV": 7050, "line_energies_eV": (7000, 7100)},
        {"bandwidth": 0.01, "spikes": 3, "polarisation": "none"},
    ],
)
def test_settings_that_were_written_down_are_read_as_the_same_beam(values: dict[str, object]) -> None:
    settings = BeamSettings(**values)  # type: ignore[arg-type]
    again = BeamSettings.model_validate_json(settings.model_dump_json())
    assert beam_from_settings(again) == beam_from_settings(settings)


def test_the_command_line_takes_one_width_or_two() -> None:
    pulse = "beam.pulse_photons=1e11"
    for override, fluence in (("beam.focus_fwhm_um=0.5", 4e11), ("beam.focus_fwhm_um=[0.5, 1.0]", 2e11)):
        beam = beam_from_settings(load_settings(BeamFile, None, [pulse, override]).beam)
        assert beam.fluence_per_um2 == pytest.approx(fluence * np.log(2) * 4 / np.pi)
    with pytest.raises(SettingsError, match=r"focus_fwhm_um.*'wide'.*one or two positive widths"):
        load_settings(BeamFile, None, [pulse, "beam.focus_fwhm_um=wide"])


def test_a_geometry_file_takes_only_what_was_set_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "a.geom"
    path.write_text(STACKED_GEOM)
    assert detector_from_settings(DetectorSettings(geometry=str(path))).distance_m == pytest.approx(0.1)
    assert detector_from_settings(DetectorSettings(geometry=str(path), distance_m=0.7)).distance_m == 0.7


@pytest.mark.parametrize("arguments", [{"pixels": 1}, {"distance_m": 0}, {"corners": "round"}, {"pixel": 3}])
def test_settings_out_of_bounds_are_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(SettingsError):
        DetectorSettings(**arguments)  # type: ignore[arg-type]


def test_every_setting_has_a_description() -> None:
    for section in (BeamSettings, DetectorSettings):
        assert all(field.description for field in section.model_fields.values())
