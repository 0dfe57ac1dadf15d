"""What follows from the positions of the pixels, against hand-derived values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orienteer.detector.detector import Detector
from orienteer.detector.masks import PixelUse
from orienteer.detector.panel import Panel
from orienteer.detector.pixel_list import pixel_list
from orienteer.detector.square import square_detector
from orienteer.errors import GeometryMismatch, OrienteerError


def exact_solid_angle_sr(corners: np.ndarray) -> float:
    """Solid angle of a rectangle seen from the origin: two triangles by Van Oosterom and Strackee."""
    total = 0.0
    for a, b, c in ((corners[0], corners[1], corners[2]), (corners[0], corners[2], corners[3])):
        la, lb, lc = (np.linalg.norm(v) for v in (a, b, c))
        below = la * lb * lc + (a @ b) * lc + (a @ c) * lb + (b @ c) * la
        total += 2 * np.arctan2(abs(a @ np.cross(b, c)), below)
    return total


def test_q_at_45_degrees_is_the_hand_derived_one() -> None:
    detector = Detector(pixels=pixel_list([[0.1, 0, 0.1], [0, -0.1, 0.1]], 1e-8))
    q = detector.q_inv_A(wavelength_A=2.0)
    half = np.sqrt(0.5)
    assert np.allclose(q, [[half / 2, 0, (half - 1) / 2], [0, -half / 2, (half - 1) / 2]], rtol=1e-14)
    assert np.allclose(detector.q_length_inv_A(2.0), 2 * np.sin(np.radians(22.5)) / 2.0)


def test_q_backwards_is_twice_the_wave_number() -> None:
    detector = Detector(pixels=pixel_list([[0, 0, -0.1]], 1e-8))
    assert np.allclose(detector.q_inv_A(2.0), [[0, 0, -1.0]])


def test_all_q_lie_on_the_ewald_sphere_and_bend_back(box_around_the_sample: Detector) -> None:
    wavelength = 1.7
    q = box_around_the_sample.q_inv_A(wavelength)
    assert np.allclose(
        np.linalg.norm(q + np.array([0, 0, 1 / wavelength]), axis=1), 1 / wavelength, rtol=1e-14
    )
    assert q[:, 2].max() < 0


def test_the_bend_keeps_its_digits_at_small_angles() -> None:
    # 1 - cos loses all digits here; the series is 2theta^2 / 2.
    detector = Detector(pixels=pixel_list([[1e-8, 0, 1.0]], 1e-12))
    assert detector.ewald_vectors[0, 2] == pytest.approx(-0.5e-16, rel=1e-12)


def test_solid_angles_of_a_closed_box_sum_to_four_pi(box_around_the_sample: Detector) -> None:
    assert box_around_the_sample.solid_angle_sr.sum() == pytest.approx(4 * np.pi, rel=1e-3)


def test_polarised_light_scatters_two_thirds_of_isotropic(box_around_the_sample: Detector) -> None:
    # The total cross-section of a free electron is 8 pi / 3 r_e^2 whatever the polarisation.
    for kind in ("x", "y", "none"):
        assert box_around_the_sample.correction(kind).sum() == pytest.approx(8 * np.pi / 3, rel=1e-3)


def test_polarisation_identities(box_around_the_sample: Detector) -> None:
    x, y, none = (box_around_the_sample.polarisation(kind) for kind in ("x", "y", "none"))
    cosine = box_around_the_sample.directions[:, 2]
    assert np.allclose(x + y, 1 + cosine**2, atol=1e-14)
    assert np.allclose(none, (1 + cosine**2) / 2, atol=1e-14)


def test_nothing_scatters_along_the_polarisation() -> None:
    detector = Detector(pixels=pixel_list([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]], 1e-8))
    assert detector.polarisation("x").tolist() == [0, 1, 1]
    assert detector.polarisation("y").tolist() == [1, 0, 1]
    with pytest.raises(OrienteerError, match="'z'"):
        detector.polarisation("z")  # type: ignore[arg-type]


@settings(max_examples=30, deadline=None)
@given(st.floats(-1.2, 1.2), st.floats(-1.2, 1.2), st.floats(-0.05, 0.05))
def test_the_solid_angle_of_a_tilted_pixel_is_the_exact_one(tilt: float, turn: float, x: float) -> None:
    fast = 1e-4 * np.array([np.cos(tilt), 0, np.sin(tilt)])
    slow = 1e-4 * np.array([0, np.cos(turn), np.sin(turn)])
    panel = Panel("p", np.array([x, 0.01, 0.1]) - fast / 2 - slow / 2, fast, slow, (1, 1))
    found = Detector([panel]).solid_angle_sr[0]
    assert found == pytest.approx(exact_solid_angle_sr(panel.corners_m()), rel=1e-4, abs=1e-12)


def test_the_correction_is_the_product_of_its_parts_once(tilted_detector: Detector) -> None:
    expected = tilted_detector.solid_angle_sr * tilted_detector.polarisation("y") * tilted_detector.efficiency
    assert np.array_equal(tilted_detector.correction("y"), expected)


def test_a_stored_value_that_no_panel_covers_is_masked_and_inert(tilted_detector: Detector) -> None:
    gap = np.arange(15, 20)
    assert not tilted_detector.covered[gap].any()
    assert (tilted_detector.mask[gap] == PixelUse.NEVER).all()
    assert (tilted_detector.solid_angle_sr[gap] == 0).all()
    assert (tilted_detector.positions_m[gap, :2] == 0).all()
    assert (tilted_detector.ewald_vectors[gap] == 0).all()
    assert np.isfinite(tilted_detector.correction()).all()


def test_the_pixels_of_a_panel_stand_where_the_frame_has_them(tilted_detector: Detector) -> None:
    panel = tilted_detector.panels[1]
    frame = tilted_detector.positions_m.reshape(8, 5, 3)
    assert np.array_equal(frame[4:8], panel.pixel_centres_m())


def test_moving_a_group_moves_only_that_group(tilted_detector: Detector) -> None:
    moved = tilted_detector.moved((0, 0, 0.01), group="right")
    difference = moved.positions_m - tilted_detector.positions_m
    assert np.allclose(difference[20:], [0, 0, 0.01])
    assert np.array_equal(moved.positions_m[:15], tilted_detector.positions_m[:15])
    everything = tilted_detector.moved((0.001, 0, 0), group="all")
    assert np.allclose(
        (everything.positions_m - tilted_detector.positions_m)[tilted_detector.covered], [0.001, 0, 0]
    )
    assert np.array_equal(moved.mask, tilted_detector.mask)


def test_an_unknown_group_is_answered_with_the_nearest_name(tilted_detector: Detector) -> None:
    with pytest.raises(OrienteerError, match="Did you mean 'right'"):
        tilted_detector.moved((0, 0, 0), group="rigth")


def test_turning_about_the_beam_turns_the_scattering_vectors(tilted_detector: Detector) -> None:
    quarter = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    turned = tilted_detector.rotated(quarter)
    assert np.allclose(turned.q_inv_A(1.0), tilted_detector.q_inv_A(1.0) @ quarter.T, atol=1e-15)
    assert np.allclose(turned.solid_angle_sr, tilted_detector.solid_angle_sr)
    with pytest.raises(OrienteerError, match="orthogonal"):
        tilted_detector.rotated(2 * quarter)


def test_a_pixel_list_gives_the_same_as_the_panel_it_came_from() -> None:
    square = square_detector(8, 1e-3, 0.05)
    listed = Detector(pixels=pixel_list(square.positions_m, 1e-6), frame_shape=(8, 8))
    assert np.array_equal(listed.ewald_vectors, square.ewald_vectors)
    assert np.allclose(listed.solid_angle_sr, square.solid_angle_sr, rtol=1e-14)
    shifted = listed.moved((1e-3, 0, 0))
    assert np.allclose(shifted.positions_m[:, 0], square.positions_m[:, 0] + 1e-3)


def test_frames_of_another_shape_are_a_mismatch_with_both_shapes() -> None:
    detector = square_detector(4, 1e-3, 0.1)
    with pytest.raises(GeometryMismatch, match=r"\(2, 5\).*\(4, 4\)"):
        detector.assemble(np.zeros((2, 5)))


def test_arrays_cannot_be_changed_in_place() -> None:
    detector = square_detector(4, 1e-3, 0.1)
    for array in (detector.mask, detector.positions_m, detector.ewald_vectors, detector.solid_angle_sr):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_equal_detectors_are_equal_and_a_changed_one_is_not(tilted_detector: Detector) -> None:
    same = tilted_detector.with_mask(tilted_detector.mask)
    assert same == tilted_detector
    assert hash(same) == hash(tilted_detector)
    assert tilted_detector.moved((0, 0, 1e-6)) != tilted_detector
    assert tilted_detector.with_efficiency(None) != tilted_detector


def test_impossible_detectors_are_refused() -> None:
    panel = Panel("p", (0, 0, 1), (1e-3, 0, 0), (0, 1e-3, 0), (2, 2))
    twin = Panel("p", (0, 0, 1), (1e-3, 0, 0), (0, 1e-3, 0), (2, 2), first_pixel=4)
    over = Panel("q", (0, 0, 1), (1e-3, 0, 0), (0, 1e-3, 0), (2, 2), first_pixel=2)
    self_over = Panel("q", (0, 0, 1), (1e-3, 0, 0), (0, 1e-3, 0), (2, 2), slow_stride=1)
    for arguments, words in (
        ({"panels": []}, "one of the two"),
        ({"panels": [panel, twin]}, "two panels are called"),
        ({"panels": [panel, over]}, "which another panel claims"),
        ({"panels": [self_over], "frame_shape": (4,)}, "twice"),
        ({"panels": [panel], "frame_shape": (3,)}, "reaches pixel 3"),
        ({"panels": [panel], "frame_shape": (1 << 20, 1 << 20)}, "does not have between"),
        ({"panels": [panel], "mask": [0, 1]}, "shape"),
        ({"panels": [panel], "efficiency": [1, 1, 1, -1]}, ">= 0"),
        ({"panels": [panel], "efficiency": [1, 1, 1, np.nan]}, ">= 0"),
        ({"pixels": pixel_list([[0, 0, 1.0]], 1e-8), "frame_shape": (2,)}, "1 pixels are listed"),
    ):
        with pytest.raises(OrienteerError, match=words):
            Detector(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("wavelength", [0, -1, np.nan, np.inf])
def test_a_wavelength_is_positive(wavelength: float) -> None:
    with pytest.raises(OrienteerError, match="wavelength_A"):
        square_detector(4, 1e-3, 0.1).q_inv_A(wavelength)
