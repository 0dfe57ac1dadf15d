"""The settings make the beam and the detector that they describe."""

from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from orienteer.detector.resolution import corner_resolution_A, edge_resolution_A
from orienteer.detector.settings import (
    BeamSettings,
    DetectorSettings,
    beam_from_settings,
    detector_from_settings,
)
from orienteer.detector.spectrum import SaseSpectrum
from orienteer.errors import OrienteerError

STACKED_GEOM = (Path(__file__).parent / "data" / "stacked.geom").read_text()


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


def test_a_geometry_file_takes_only_what_was_set_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "a.geom"
    path.write_text(STACKED_GEOM)
    assert detector_from_settings(DetectorSettings(geometry=str(path))).distance_m == pytest.approx(0.1)
    assert detector_from_settings(DetectorSettings(geometry=str(path), distance_m=0.7)).distance_m == 0.7


@pytest.mark.parametrize("arguments", [{"pixels": 1}, {"distance_m": 0}, {"corners": "round"}, {"pixel": 3}])
def test_settings_out_of_bounds_are_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        DetectorSettings(**arguments)  # type: ignore[arg-type]


def test_every_setting_has_a_description() -> None:
    for section in (BeamSettings, DetectorSettings):
        assert all(field.description for field in section.model_fields.values())
