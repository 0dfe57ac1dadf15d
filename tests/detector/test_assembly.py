"""The assembled view shows every pixel where it stands, with y up and x to the right."""

import numpy as np

from orienteer.detector.detector import Detector
from orienteer.detector.panel import Panel
from orienteer.detector.pixel_list import pixel_list
from orienteer.detector.square import square_detector


def test_a_square_detector_is_its_own_picture() -> None:
    detector = square_detector((5, 7), 1e-3, 0.1)
    frames = np.arange(2 * 35).reshape(2, 35)
    assert np.array_equal(detector.assemble(frames), frames.reshape(2, 5, 7))
    assert np.allclose(detector.assembly.x_m, detector.positions_m.reshape(5, 7, 3)[0, :, 0])
    assert np.allclose(detector.assembly.y_m, detector.positions_m.reshape(5, 7, 3)[:, 0, 1])


def test_columns_follow_x_and_rows_follow_y_however_the_panel_is_stored() -> None:
    # Slow axis along -x, fast axis along +y, as Dragonfly and half of the field store their frames.
    panel = Panel("p", (3e-3, -2e-3, 0.1), fast_m=(0, 1e-3, 0), slow_m=(-1e-3, 0, 0), shape=(6, 4))
    detector = Detector([panel])
    picture = detector.assemble(detector.positions_m[:, 0])
    assert picture.shape == (4, 6)
    assert np.allclose(picture, detector.assembly.x_m)
    assert np.allclose(detector.assemble(detector.positions_m[:, 1]), detector.assembly.y_m[:, None])


def test_a_turned_panel_has_no_holes_and_every_cell_its_nearest_pixel() -> None:
    angle = 0.4
    matrix = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
    detector = square_detector(40, 1e-3, 0.1).rotated(matrix)
    assembly = detector.assembly
    x, y = np.meshgrid(assembly.x_m, assembly.y_m)
    cells = np.stack([x, y], axis=-1).reshape(-1, 2)
    distance = np.linalg.norm(cells[:, None] - detector.positions_m[None, :, :2], axis=2)
    inside = (np.abs(cells @ matrix[:2, :2]).max(axis=1) < 20e-3).reshape(x.shape)
    assert np.array_equal(assembly.pixel >= 0, inside)
    chosen = assembly.pixel[inside]
    to_chosen = distance.reshape(*x.shape, -1)[inside][np.arange(len(chosen)), chosen]
    assert np.allclose(to_chosen, distance.reshape(*x.shape, -1)[inside].min(axis=1), rtol=0, atol=1e-15)


def test_gaps_are_filled_with_the_fill_value_and_the_type_is_kept_where_it_can() -> None:
    panels = [
        Panel("a", (-3e-3, 0, 0.1), (1e-3, 0, 0), (0, 1e-3, 0), (2, 2), 0),
        Panel("b", (2e-3, 0, 0.1), (1e-3, 0, 0), (0, 1e-3, 0), (2, 2), 4),
    ]
    detector = Detector(panels, frame_shape=(2, 2, 2))
    counts = np.arange(1, 9, dtype=np.uint8)
    assert detector.assemble(counts, fill=0).dtype == np.uint8
    assert detector.assemble(counts, fill=0).tolist() == [[1, 2, 0, 0, 0, 5, 6], [3, 4, 0, 0, 0, 7, 8]]
    with_gaps = detector.assemble(counts.reshape(2, 2, 2))
    assert np.isnan(with_gaps[:, 2:5]).all()
    assert with_gaps.dtype == np.float32


def test_a_list_of_pixels_assembles_too() -> None:
    square = square_detector(12, 1e-3, 0.1)
    order = np.random.default_rng(3).permutation(144)
    listed = Detector(pixels=pixel_list(square.positions_m[order], 1e-6))
    assert np.array_equal(listed.assemble(order), np.arange(144).reshape(12, 12))


def test_an_edge_on_panel_is_not_seen(box_around_the_sample: Detector) -> None:
    seen = np.unique(box_around_the_sample.assembly.pixel)
    ends = [panel for panel in box_around_the_sample.panels if panel.name == "n2+"]
    assert set(seen[seen >= 0]) == set(ends[0].frame_indices().reshape(-1))


def test_panels_far_apart_make_a_coarser_picture_and_no_huge_one() -> None:
    panels = [
        Panel("a", (0, 0, 0.1), (1e-6, 0, 0), (0, 1e-6, 0), (2, 2), 0),
        Panel("b", (100, 100, 0.1), (1e-6, 0, 0), (0, 1e-6, 0), (2, 2), 4),
    ]
    assembly = Detector(panels).assembly
    assert assembly.pixel.size <= 1 << 26
    assert assembly.cell_m > 1e-3
