"""Pictures of data sets: what is drawn is what is there, also where something is missing."""

import io

import numpy as np
import pytest

import orienteer
from orienteer.detector.square import square_detector
from orienteer.plot.patterns import as_image, plot_summary
from orienteer.plot.volume import plot_volume
from orienteer.source.patterns import Patterns
from orienteer.source.summary import summarise

DETECTOR = square_detector(16, pixel_size_m=0.001, distance_m=0.1, beam_stop_radius_pixels=3)
COUNTS = np.random.default_rng(1).poisson(0.3, (9, 256)).astype(np.int32)


def is_png(figure: object) -> bool:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")  # type: ignore[attr-defined]
    return buffer.getvalue().startswith(b"\x89PNG")


@pytest.mark.parametrize("geometry", [None, DETECTOR])
@pytest.mark.parametrize(
    "frames", [COUNTS, COUNTS * 0, COUNTS[:2], COUNTS[:0], COUNTS.astype(np.float32) - 0.4]
)
def test_every_data_set_can_be_drawn(geometry: object, frames: np.ndarray) -> None:
    source = orienteer.open(Patterns(frames), geometry=geometry)  # type: ignore[arg-type]
    assert is_png(plot_summary(summarise(source, source.batches(), 2.5)))


def test_masked_pixels_are_blank_and_the_rest_keeps_its_place() -> None:
    source = orienteer.open(Patterns(COUNTS), geometry=DETECTOR)
    image = as_image(COUNTS[0].astype(float), source)
    assert np.isnan(image[8, 8])
    assert image[0, 0] == COUNTS[0, 0]
    assert image[0, 15] == COUNTS[0, 15]


def test_frames_without_geometry_are_drawn_as_stored() -> None:
    source = orienteer.open(COUNTS.reshape(9, 4, 8, 8))
    assert as_image(COUNTS[0].astype(float), source).shape == (32, 8)


def test_a_list_of_pixels_is_no_picture() -> None:
    """A thousand pixels in one row would be a line too thin to see."""
    source = orienteer.open(Patterns(COUNTS))
    figure = plot_summary(summarise(source, source.batches()))
    assert not any(axes.images for axes in figure.axes)
    said = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert said == ["no geometry: give --geometry FILE"] * 6


def test_frames_without_photons_say_so() -> None:
    source = orienteer.open(Patterns(COUNTS * 0), geometry=DETECTOR)
    figure = plot_summary(summarise(source, source.batches(), 2.5))
    assert [text.get_text() for axes in figure.axes for text in axes.texts] == ["no photons"] * 6
    figure.canvas.draw()
    photons = next(axes for axes in figure.axes if axes.get_title() == "photons per frame")
    numbers = [label.get_text() for label in photons.get_xticklabels()]
    assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize("space", ["real", "reciprocal"])
@pytest.mark.parametrize("values", [np.random.default_rng(2).random((5, 6, 7)), np.zeros((5, 6, 7))])
def test_volumes_are_drawn_with_their_own_axes(space: str, values: np.ndarray) -> None:
    volume = orienteer.Volume(values, voxel_size=2.0, space=space)  # type: ignore[arg-type]
    figure = plot_volume(volume, "test")
    assert is_png(figure)
    labels = [axes.get_xlabel()[:1] + axes.get_ylabel()[:1] for axes in figure.axes[:3]]
    assert labels == ["xy", "xz", "yz"]
    assert figure.axes[0].images[0].get_array().shape == (6, 5)
