"""Pictures: PNG files that others read, planes at their places, the map of directions, and colours."""

import io
import re
from xml.etree import ElementTree

import matplotlib.image
import numpy as np
import pytest

from orienteer.orientation.quaternion import random_uniform
from orienteer.report.directions import draw_directions, on_map
from orienteer.report.picture import Colours, Plane, draw_planes
from orienteer.report.planes import cropped, draw_density, draw_intensity, draw_projections
from orienteer.report.png import NOTHING, as_entries, encode_png, palette_of
from orienteer.volume.volume import Volume

RNG = np.random.default_rng(1)


def decoded(png: bytes) -> np.ndarray:
    return np.rint(255 * matplotlib.image.imread(io.BytesIO(png))).astype(np.uint8)


def test_png_files_are_read_by_others() -> None:
    entries = RNG.integers(0, 256, (5, 7), np.uint8)
    palette = RNG.integers(0, 256, (256, 3), np.uint8)
    np.testing.assert_array_equal(decoded(encode_png(entries, palette))[..., :3], palette[entries])
    rgba = RNG.integers(0, 256, (4, 3, 4), np.uint8)
    np.testing.assert_array_equal(decoded(encode_png(rgba)), rgba)


def test_entries_span_the_palette_and_nothing_is_grey() -> None:
    entries = as_entries(np.array([-1.0, 0.0, 0.5, 1.0, 2.0, np.nan]))
    assert entries.tolist() == [0, 0, 127, NOTHING - 1, NOTHING - 1, NOTHING]
    assert palette_of("viridis")[NOTHING].tolist() == [150, 150, 150]


def test_colours_are_shares_of_the_range() -> None:
    linear = Colours("viridis", 2.0, 4.0, "")
    np.testing.assert_allclose(linear.shares(np.array([2.0, 3.0, np.nan])), [0, 0.5, np.nan])
    log = Colours("viridis", 0.01, 100.0, "", logarithmic=True)
    np.testing.assert_allclose(log.shares(np.array([0.0, 1.0, 100.0, np.nan])), [0, 0.5, 1, np.nan])


def test_a_plane_runs_to_the_right_and_up() -> None:
    values = np.zeros((3, 2))
    values[2, 1] = 1.0  # far right, top
    plane = Plane("", values, (0, 2), (0, 1), "x", "y")
    svg = draw_planes([plane], Colours("gray", 0, 1, ""), "a plane")
    ElementTree.fromstring(svg)
    import base64

    first = re.findall(r'href="data:image/png;base64,([^"]+)"', svg)[0]
    pixels = decoded(base64.b64decode(first))[..., 0]
    assert pixels.shape == (2, 3)
    assert pixels[0, 2] == 255
    assert pixels.sum() == 255


def test_the_map_keeps_areas_and_has_north_up() -> None:
    density = RNG.random((6, 12))
    shown = on_map(density, 1200, 600)
    inside = shown[np.isfinite(shown)]
    assert inside.mean() == pytest.approx(density.mean(), rel=0.01)
    assert len(inside) / shown.size == pytest.approx(np.pi / 4, rel=0.01)
    for cell in (density[0, 0], density[5, 11]):
        assert (inside == cell).sum() / len(inside) == pytest.approx(1 / 72, rel=0.05)
    assert shown[5, 600] in density[5]
    assert shown[-5, 600] in density[0]
    assert shown[300, 3] in density[:, 0]


def test_directions_are_drawn_for_any_frames() -> None:
    drawn = draw_directions(random_uniform(300, 1), "D2")
    assert drawn is not None
    ElementTree.fromstring(drawn)
    assert draw_directions(np.zeros((0, 4)), "C1") is None
    assert draw_directions(np.full((3, 4), np.nan), "C1") is None


def test_a_cropped_density_stays_at_its_place() -> None:
    values = np.zeros((20, 20, 20), np.float32)
    values[4:7, 9:12, 9:15] = 1.0
    volume = Volume(values, 2.0)
    part = cropped(volume)
    assert part.values.sum() == values.sum()
    assert max(part.shape) < 20
    for whole_axis, axis, index in zip(
        volume.axes(), part.axes(), np.argwhere(part.values > 0)[0], strict=True
    ):
        assert axis[index] in whole_axis
    first = [axis[i] for axis, i in zip(part.axes(), np.argwhere(part.values > 0)[0], strict=True)]
    assert first == [volume.axes()[0][4], volume.axes()[1][9], volume.axes()[2][9]]
    empty = Volume(np.zeros((5, 5, 5)), 2.0)
    assert cropped(empty).shape == (5, 5, 5)


@pytest.mark.parametrize("fill", [0.0, -1.0, 3.0, np.nan])
@pytest.mark.parametrize("shape", [(5, 5, 5), (4, 6, 3), (1, 1, 1)])
def test_any_volume_can_be_drawn(fill: float, shape: tuple[int, int, int]) -> None:
    values = np.full(shape, fill)
    for svg in (
        draw_intensity(Volume(values, 0.01, "reciprocal"), "the intensity"),
        draw_density(Volume(values, 2.0), "electrons/Å³"),
        draw_projections(Volume(values, 2.0), "electrons/Å³"),
    ):
        ElementTree.fromstring(svg)
        assert "nan" not in re.sub(r'href="[^"]*"', "", svg)


def test_a_projection_has_the_unit_of_a_sum_over_length() -> None:
    volume = Volume(RNG.random((6, 6, 6)), 2.0)
    assert "projection (electrons/Å²)" in draw_projections(volume, "electrons/Å³")
    assert "projection (arbitrary units × Å)" in draw_projections(volume, "arbitrary units")


def test_very_many_frames_are_thinned_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    from orienteer.report import directions

    counted = []
    count = directions.viewing_directions
    monkeypatch.setattr(directions, "_MOST_DIRECTIONS", 1000)
    monkeypatch.setattr(
        directions, "viewing_directions", lambda q, group: (counted.append(len(q)), count(q, group))[1]
    )
    draw_directions(random_uniform(900, 1), "D2")
    assert counted == [225]  # times four equivalent ones
