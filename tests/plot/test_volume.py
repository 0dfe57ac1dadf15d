"""Slices of a volume say what their colours mean."""

import numpy as np
import pytest

from orienteer.plot.volume import plot_volume
from orienteer.volume.volume import Volume


@pytest.mark.parametrize(("space", "label"), [("real", "density"), ("reciprocal", "intensity")])
def test_the_colours_of_slices_have_a_name(space: str, label: str) -> None:
    values = np.random.default_rng(0).random((6, 6, 6))
    figure = plot_volume(Volume(values, 0.01, space), "a map")
    assert figure.axes[-1].get_ylabel() == label
