"""The picture of a detector shows its panels, masks and rings, without a display."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from orienteer.detector.detector import Detector
from orienteer.detector.panel import Panel
from orienteer.detector.pixel_list import pixel_list
from orienteer.detector.square import square_detector
from orienteer.plot.detector import plot_detector


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]


def test_the_picture_has_rings_with_resolutions_and_the_reach_in_its_title() -> None:
    detector = square_detector(32, 1e-3, 0.1, beam_stop_radius_pixels=3, corners="merge_only", name="demo")
    figure = plot_detector(detector, wavelength_A=2.0)
    assert any(text.endswith("Å") for text in texts(figure))
    title = figure.get_suptitle()
    assert "demo: 32 × 32 pixels at 0.1 m" in title
    assert "edge 12.6 Å" in title
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    counts = np.bincount(detector.mask)
    assert labels == [
        f"orient and merge: {counts[0]}",
        f"merge only: {counts[1]}",
        f"never used: {counts[2]}",
        "beam",
    ]


def test_without_a_wavelength_there_are_no_rings() -> None:
    assert not texts(plot_detector(square_detector(8, 1e-3, 0.1)))


def test_the_image_shows_the_mask_where_the_pixels_are() -> None:
    detector = square_detector((4, 6), 1e-3, 0.1).with_mask(np.arange(24) % 3)
    image = plot_detector(detector).axes[0].images[0]
    assert np.array_equal(np.asarray(image.get_array()), np.arange(24).reshape(4, 6) % 3)
    assert image.get_extent() == pytest.approx([-3, 3, -2, 2])
    assert image.origin == "lower"


def test_panels_are_named_and_the_picture_is_saved(tmp_path: Path) -> None:
    panels = [
        Panel(name, (x, 0, 0.1), (1e-3, 0, 0), (0, 1e-3, 0), (3, 4), k * 12)
        for k, (name, x) in enumerate([("left", -6e-3), ("right", 1e-3)])
    ]
    figure = plot_detector(Detector(panels), 1.5)
    assert {"left", "right"} <= set(texts(figure))
    figure.savefig(tmp_path / "detector.png")
    assert (tmp_path / "detector.png").stat().st_size > 5000


def test_a_list_of_pixels_off_the_beam_is_drawn_too(tmp_path: Path) -> None:
    positions = np.random.default_rng(0).uniform(5e-3, 9e-3, (50, 3)) + np.array([0, 0, 0.1])
    figure = plot_detector(Detector(pixels=pixel_list(positions, 1e-8)), 1.0)
    figure.savefig(tmp_path / "detector.png")
    assert "reaches" in figure.get_suptitle()
