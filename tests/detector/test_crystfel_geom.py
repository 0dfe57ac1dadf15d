"""CrystFEL geometries: pixels where they must be, groups, bad regions, masks, errors that name the line."""

from pathlib import Path

import h5py
import numpy as np
import pytest

from orienteer.detector.beam import HC_EV_A
from orienteer.detector.crystfel_geom import read_crystfel
from orienteer.detector.crystfel_masks import apply_mask
from orienteer.errors import FileError, GeometryMismatch

MODULES_GEOM = (Path(__file__).parent / "data" / "modules.geom").read_text()
STACKED_GEOM = (Path(__file__).parent / "data" / "stacked.geom").read_text()


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "test.geom"
    path.write_text(text)
    return path


def test_pixels_stand_where_the_file_puts_them(tmp_path: Path) -> None:
    detector = read_crystfel(write(tmp_path, MODULES_GEOM)).detector
    assert detector.frame_shape == (2, 16, 16)
    positions = detector.positions_m.reshape(2, 16, 16, 3)
    # Module 0, ss 3, fs 10 of the first ASIC, by hand: corner + (fs + 1/2) fs + (ss + 1/2) ss, over res.
    x = (-30.5 + 10.5 * 0.002 + 3.5 * 0.999998) / 5000
    y = (20.25 - 10.5 * 0.999998 + 3.5 * 0.002) / 5000
    assert np.allclose(positions[0, 3, 10], [x, y, 0.201], rtol=1e-14)
    # Module 1, ss 2, fs 4: the fast axis leans out of the plane.
    assert np.allclose(
        positions[1, 2, 4], [(20 - 4.5) / 5000, -2.5 / 5000, 0.2 + 4.5 * 0.01 / 5000], rtol=1e-14
    )
    # The second ASIC of module 0 starts at ss 8 of the same array.
    assert np.allclose(positions[0, 8, 0, 0], (-20.5 + 0.5 * 0.002 + 0.5 * 0.999998) / 5000, rtol=1e-14)


def test_the_beam_and_unknown_lines_are_kept(tmp_path: Path) -> None:
    geometry = read_crystfel(write(tmp_path, MODULES_GEOM))
    assert geometry.photon_energy_eV == pytest.approx(9300)
    assert geometry.adu_per_photon == {"p0a0": 60, "p0a1": 60, "p1a0": 60, "p1a1": 60}
    assert [(line.key, line.value) for line in geometry.other] == [("peak_list", "/entry_1/result_1")]
    stacked = read_crystfel(write(tmp_path, STACKED_GEOM))
    assert stacked.photon_energy_eV == pytest.approx(HC_EV_A / 1.3)
    elsewhere = read_crystfel(write(tmp_path, STACKED_GEOM.replace("1.3 A", "/beam/wavelength A")))
    assert elsewhere.photon_energy_eV is None


def test_groups_are_ordered_from_the_outermost_and_move_together(tmp_path: Path) -> None:
    detector = read_crystfel(write(tmp_path, MODULES_GEOM)).detector
    assert [panel.groups for panel in detector.panels] == [("all", "q0")] * 2 + [("all", "q1")] * 2
    assert detector.collections == {"quadrants": ("q0", "q1")}
    shift = detector.moved((1e-3, 0, 0), "q1").positions_m - detector.positions_m
    assert np.allclose(shift.reshape(2, 256, 3)[1], [1e-3, 0, 0])
    assert not shift.reshape(2, 256, 3)[0].any()


def test_a_gap_in_the_stored_array_is_never_used(tmp_path: Path) -> None:
    detector = read_crystfel(write(tmp_path, STACKED_GEOM)).detector
    assert detector.frame_shape == (10, 6)
    assert np.array_equal(np.flatnonzero(~detector.covered), np.arange(24, 36))
    wider = read_crystfel(write(tmp_path, STACKED_GEOM), frame_shape=(12, 8)).detector
    assert np.array_equal(
        wider.positions_m.reshape(12, 8, 3)[6, :6], detector.positions_m.reshape(10, 6, 3)[6]
    )
    with pytest.raises(FileError, match=r"\(10, 6\).*\(9, 6\)"):
        read_crystfel(write(tmp_path, STACKED_GEOM), frame_shape=(9, 6))


def test_defaults_count_for_the_panels_after_them_only(tmp_path: Path) -> None:
    text = STACKED_GEOM.replace("b/min_fs", "res = 1000\nb/min_fs")
    a, b = read_crystfel(write(tmp_path, text)).detector.panels
    assert np.allclose(np.linalg.norm([a.fast_m, b.fast_m], axis=1), [1 / 13333.3, 1e-3])
    late = STACKED_GEOM.replace("clen = 0.1\n", "") + "clen = 0.1\n"
    assert read_crystfel(write(tmp_path, late)).detector.distance_m == pytest.approx(0.1)


def test_panels_of_several_data_blocks_are_stacked(tmp_path: Path) -> None:
    text = STACKED_GEOM.replace("a/min_fs", "a/data = /m0\na/min_fs").replace(
        "b/min_fs", "b/data = /m1\nb/min_fs"
    )
    text = text.replace("b/min_ss = 6", "b/min_ss = 0").replace("b/max_ss = 9", "b/max_ss = 3")
    geometry = read_crystfel(write(tmp_path, text))
    assert geometry.detector.frame_shape == (2, 4, 6)
    assert [panel.first_pixel for panel in geometry.detector.panels] == [0, 24]


def test_bad_regions_in_stored_and_in_laboratory_coordinates(tmp_path: Path) -> None:
    text = STACKED_GEOM + (
        "bad_stored/panel = b\nbad_stored/min_fs = 1\nbad_stored/max_fs = 2\n"
        "bad_stored/min_ss = 7\nbad_stored/max_ss = 7\n"
        "bad_lab/min_x = 2.4\nbad_lab/max_x = 3.6\nbad_lab/min_y = -8\nbad_lab/max_y = -6.4\n"
        "bad_row/min_ss = 9\nbad_row/max_ss = 9\n"
    )
    mask = read_crystfel(write(tmp_path, text)).detector.mask.reshape(10, 6)
    expected = np.zeros((10, 6), int)
    expected[4:6] = 2  # no panel
    expected[7, 1:3] = 2
    expected[9] = 2
    # Centres of panel a: x = 1.5 + fs, y = -7.5 + ss; so fs 1 and 2, ss 0 and 1 lie inside.
    expected[0:2, 1:3] = 2
    assert np.array_equal(mask, expected)


def test_a_panel_that_is_not_indexed_and_edge_pixels_are_never_used(tmp_path: Path) -> None:
    text = STACKED_GEOM + "a/no_index = 1\nb/mask_edge_pixels = 1\n"
    mask = read_crystfel(write(tmp_path, text)).detector.mask.reshape(10, 6)
    assert (mask[:6] == 2).all()
    assert (mask[6:] == 0).sum() == 2 * 4
    assert (mask[7:9, 1:5] == 0).all()


def test_a_detector_shift_moves_everything(tmp_path: Path) -> None:
    plain = read_crystfel(write(tmp_path, STACKED_GEOM)).detector
    shifted = read_crystfel(write(tmp_path, "detector_shift_x = 2 mm\n" + STACKED_GEOM)).detector
    assert np.allclose((shifted.positions_m - plain.positions_m)[plain.covered], [2e-3, 0, 0])


def test_a_mask_is_applied_when_given_by_its_place_in_the_data(tmp_path: Path) -> None:
    path = write(tmp_path, MODULES_GEOM)
    values = np.zeros((2, 16, 16), np.uint32)
    values[0, 1, 2], values[1, 15, 15], values[0, 0, 0] = 1, 0x80, 0x100
    geometry = read_crystfel(path)
    assert (geometry.detector.mask == 0).all()
    assert geometry.masks[0].location == "/entry_1/data_1/mask"
    assert (geometry.masks[0].good_bits, geometry.masks[0].bad_bits) == (0, 255)
    given = read_crystfel(path, masks={"/entry_1/data_1/mask": values}).detector
    assert np.flatnonzero(given.mask).tolist() == [18, 511]  # 0x100 is not among the bad bits
    assert apply_mask(geometry.detector, geometry.masks[0], values) == given
    with pytest.raises(GeometryMismatch, match="mask"):
        apply_mask(geometry.detector, geometry.masks[0], values[0])


def test_good_bits_must_all_be_set(tmp_path: Path) -> None:
    text = MODULES_GEOM.replace("mask_good = 0", "mask_good = 3").replace("mask_bad = 0xff", "mask_bad = 0")
    reference = read_crystfel(write(tmp_path, text)).masks[0]
    assert reference.bad_pixels([0, 1, 2, 3, 7]).tolist() == [True, True, True, False, False]


def test_a_mask_file_beside_the_geometry_is_found_and_a_missing_one_is_said(tmp_path: Path) -> None:
    text = STACKED_GEOM.replace(
        "a/min_fs", "mask1_file = mask.h5\nmask1_data = /m\nmask1_badbits = 1\na/min_fs", 1
    )
    path = write(tmp_path, text)
    with pytest.warns(UserWarning, match=r"mask\.h5 was not found"):
        read_crystfel(path)
    values = np.zeros((10, 6), np.uint8)
    values[0, 3] = 1
    with h5py.File(tmp_path / "mask.h5", "w") as file:
        file["m"] = values
    assert read_crystfel(path).detector.mask[3] == 2


def test_a_camera_length_in_the_data_needs_the_distance(tmp_path: Path) -> None:
    path = write(tmp_path, STACKED_GEOM.replace("clen = 0.1", "clen = /LCLS/detector/z mm"))
    with pytest.raises(FileError, match="line 2: the camera length is stored in the data files") as caught:
        read_crystfel(path)
    assert "distance_m" in caught.value.hint
    assert read_crystfel(path, distance_m=0.25).detector.distance_m == 0.25


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("a/max_fs = 5", "a/max_fs = many", "line 8: 'max_fs' needs a number"),
        ("a/max_fs = 5", "a/max_fs = 99999999999", "line 8: 'max_fs'"),
        ("a/max_fs = 5", "a/max_fs = -1", "line 8"),
        ("a/fs = 1.0x", "a/fs = 1.0q", "line 13: 'fs' needs a vector"),
        ("a/fs = 1.0x", "a/fs = 1.0y", "panel 'a' has no area"),
        ("res = 13333.3", "res = 0", "line 3: 'res'"),
        ("res = 13333.3", "", "panel 'a' has no 'res'"),
        ("clen = 0.1", "", "no camera length"),
        ("clen = 0.1", "clen = 10 feet", "line 2: 'clen' needs a number in m, mm"),
        ("dim1 = ss", "dim1 = xx", "'%' or whole numbers"),
        ("dim1 = ss", "", "dim2, but not every dim"),
        ("b/min_ss = 6", "b/min_ss = 3", "which another panel claims"),
        ("b/ss = 1.0y", "b/ss = 1.0y\ngroup_x = a,c", "member 'c'"),
        ("b/ss = 1.0y", "b/ss = 1.0y\ngroup_x = y\ngroup_y = x", "member of itself"),
        ("b/ss = 1.0y", "b/ss = 1.0y\nbad1/min_x = 0\nbad1/max_fs = 2", "mixes"),
        ("b/ss = 1.0y", "b/ss = 1.0y\nbad1/panel = c\nbad1/max_fs = 2", "panel 'c', which does not exist"),
        ("b/ss = 1.0y", "b/ss = 1.0y\nbad1/panel = a", "no bounds"),
        ("b/ss = 1.0y", "b/ss = 1.0y\nbad1/min_q = 3", "has no 'min_q'"),
        ("wavelength = 1.3 A", "wavelength = 1.3", "line 1: 'wavelength'"),
        ("wavelength = 1.3 A", "wavelength = 0 A", "line 1: the photon energy"),
        ("wavelength = 1.3 A", "something", "line 1 is not a line"),
    ],
)
def test_a_mistake_is_named_with_its_line(old: str, new: str, words: str, tmp_path: Path) -> None:
    assert old in STACKED_GEOM
    with pytest.raises(FileError, match=r"test\.geom") as caught:
        read_crystfel(write(tmp_path, STACKED_GEOM.replace(old, new, 1)))
    assert words in str(caught.value)


def test_a_file_without_panels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no panels"):
        read_crystfel(write(tmp_path, "clen = 0.1\n"))
