"""A panel is a flat rectangle of pixels by the documented rule."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orienteer.detector.panel import Panel
from orienteer.errors import OrienteerError

small = st.floats(-1e-3, 1e-3)
vectors = st.tuples(small, small, small)


@st.composite
def panels(draw: st.DrawFn) -> Panel:
    fast, slow = np.array(draw(vectors)), np.array(draw(vectors))
    # Keep the steps apart from zero and from each other.
    fast[0] += 5e-3
    slow[1] += 5e-3
    shape = (draw(st.integers(1, 7)), draw(st.integers(1, 7)))
    return Panel("p", (*draw(st.tuples(small, small)), 0.1), fast, slow, shape)


@settings(max_examples=50, deadline=None)
@given(panels())
def test_centres_follow_the_rule_of_the_conventions(panel: Panel) -> None:
    centres = panel.pixel_centres_m()
    for i in range(panel.shape[0]):
        for j in range(panel.shape[1]):
            expected = panel.origin_m + (i + 0.5) * panel.slow_m + (j + 0.5) * panel.fast_m
            assert np.allclose(centres[i, j], expected, rtol=0, atol=1e-15)


@settings(max_examples=50, deadline=None)
@given(panels(), vectors)
def test_moving_a_panel_moves_every_pixel_alike(panel: Panel, shift: tuple[float, float, float]) -> None:
    moved = panel.moved(shift)
    assert np.allclose(moved.pixel_centres_m() - panel.pixel_centres_m(), shift, atol=1e-15)
    assert np.array_equal(moved.area_vector_m2, panel.area_vector_m2)


@settings(max_examples=50, deadline=None)
@given(panels(), st.floats(-3, 3))
def test_turning_a_panel_keeps_areas_and_distances(panel: Panel, angle: float) -> None:
    cosine, sine = np.cos(angle), np.sin(angle)
    matrix = np.array([[cosine, 0, sine], [0, 1, 0], [-sine, 0, cosine]])
    turned = panel.rotated(matrix, np.zeros(3))
    assert np.allclose(turned.pixel_centres_m(), panel.pixel_centres_m() @ matrix.T, atol=1e-14)
    assert np.isclose(np.linalg.norm(turned.area_vector_m2), np.linalg.norm(panel.area_vector_m2))


def test_the_frame_index_follows_the_strides() -> None:
    panel = Panel(
        "p", (0, 0, 1), (1e-3, 0, 0), (0, 1e-3, 0), (2, 3), first_pixel=10, slow_stride=100, fast_stride=2
    )
    assert panel.frame_indices().tolist() == [[10, 12, 14], [110, 112, 114]]
    assert panel.last_pixel == 114


def test_corners_go_around_the_panel() -> None:
    panel = Panel("p", (0, 0, 1), (1e-3, 0, 0), (0, 1e-3, 0), (2, 3))
    assert np.allclose(panel.corners_m()[:, :2], [[0, 0], [3e-3, 0], [3e-3, 2e-3], [0, 2e-3]])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"fast_m": (0, 0, 0)}, "no area"),
        ({"slow_m": (2e-3, 0, 0)}, "no area"),
        ({"shape": (0, 3)}, "shape"),
        ({"shape": (1 << 20, 1 << 20)}, "shape"),
        ({"origin_m": (0, 0, np.nan)}, "finite"),
        ({"origin_m": (0, 0)}, "three"),
        ({"origin_m": (-1e-3, -1e-3, 0)}, "through the sample"),
        ({"first_pixel": -1}, "start"),
        ({"fast_stride": 0}, "start"),
        ({"name": "a/b"}, "'/'"),
        ({"groups": ("",)}, "empty"),
    ],
)
def test_an_impossible_panel_is_refused_in_words(change: dict[str, object], words: str) -> None:
    fields: dict[str, object] = {
        "name": "p", "origin_m": (0, 0, 1), "fast_m": (1e-3, 0, 0), "slow_m": (0, 1e-3, 0), "shape": (4, 4),
    }  # fmt: skip
    with pytest.raises(OrienteerError, match=words):
        Panel(**(fields | change))  # type: ignore[arg-type]
