"""Geometries that are written come back as they were, as far as the format goes."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from orienteer.detector.crystfel_geom import read_crystfel
from orienteer.detector.crystfel_write import rectangles, write_crystfel_geom
from orienteer.detector.detector import Detector
from orienteer.detector.panel import Panel
from orienteer.detector.pixel_list import pixel_list
from orienteer.detector.square import square_detector
from orienteer.errors import FileError

MODULES_GEOM = (Path(__file__).parent / "data" / "modules.geom").read_text()


def assert_same(found: Detector, detector: Detector) -> None:
    assert np.allclose(found.positions_m, detector.positions_m, rtol=0, atol=1e-16)
    assert np.allclose(found.solid_angle_sr, detector.solid_angle_sr, rtol=1e-14)
    assert np.array_equal(found.mask, detector.mask)
    assert [panel.groups for panel in found.panels] == [panel.groups for panel in detector.panels]
    assert found.collections == detector.collections


def test_what_was_read_is_written_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.geom"
    path.write_text(
        MODULES_GEOM
        + "bad1/min_x = -25\nbad1/max_x = -18\nbad1/min_y = 5\nbad1/max_y = 10\np1a1/no_index = 1\n"
    )
    detector = read_crystfel(path).detector
    assert 0 < (detector.mask == 2).sum() < 512
    write_crystfel_geom(tmp_path / "b.geom", detector, photon_energy_eV=9300, adu_per_photon=60)
    geometry = read_crystfel(tmp_path / "b.geom")
    assert_same(geometry.detector, detector)
    assert geometry.detector.frame_shape == detector.frame_shape
    assert geometry.photon_energy_eV == 9300
    assert geometry.adu_per_photon["p0a0"] == 60


def test_a_square_with_a_beam_stop(tmp_path: Path) -> None:
    detector = square_detector(32, 1e-4, 0.1, beam_stop_radius_pixels=5)
    write_crystfel_geom(tmp_path / "a.geom", detector)
    found = read_crystfel(tmp_path / "a.geom").detector
    assert_same(found, detector)
    assert found.frame_shape == (32, 32)


def test_panels_stored_one_after_the_other_in_a_flat_frame(tmp_path: Path) -> None:
    panels = [
        Panel(f"p{k}", (k * 1e-2, 0, 0.1), (1e-3, 0, 0), (0, 1e-3, 0), (2 + k, 4), 8 * k) for k in range(2)
    ]
    detector = Detector(panels)
    assert detector.frame_shape == (20,)
    write_crystfel_geom(tmp_path / "a.geom", detector)
    assert_same(read_crystfel(tmp_path / "a.geom").detector, detector)


def test_what_the_format_cannot_hold_is_said(tilted_detector: Detector, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="'merge only' pixels and the efficiency"):
        write_crystfel_geom(tmp_path / "a.geom", tilted_detector)
    found = read_crystfel(tmp_path / "a.geom").detector
    kept = tilted_detector.with_mask(np.where(tilted_detector.mask == 2, 2, 0))
    assert_same(found, kept)


def test_a_list_of_pixels_and_scattered_panels_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="list of pixels"):
        write_crystfel_geom(tmp_path / "a.geom", Detector(pixels=pixel_list([[0, 0, 1.0]], 1e-8)))
    scattered = Panel("p", (0, 0, 1), (1e-3, 0, 0), (0, 1e-3, 0), (2, 3), slow_stride=7, fast_stride=2)
    with pytest.raises(FileError, match="slabs"):
        write_crystfel_geom(tmp_path / "a.geom", Detector([scattered], frame_shape=(14,)))
    assert not list(tmp_path.iterdir())


@settings(max_examples=50, deadline=None)
@given(arrays(bool, st.tuples(st.integers(1, 8), st.integers(1, 8))))
def test_rectangles_cover_the_bad_pixels_once(bad: np.ndarray) -> None:
    count = np.zeros(bad.shape, int)
    for top, bottom, left, right in rectangles(bad):
        count[top : bottom + 1, left : right + 1] += 1
    assert np.array_equal(count, bad.astype(int))
