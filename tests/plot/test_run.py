"""The picture of a run: whole at the end, and drawn at any time before."""

import io
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from orienteer.orientation.quaternion import random_uniform
from orienteer.plot.run import plot_run
from orienteer.volume.volume import Volume

VALUES = np.random.default_rng(1).gamma(1.0, 1.0, (9, 9, 9))
INTENSITY = Volume(VALUES, 0.01, "reciprocal")
STEP: dict[str, Any] = {
    "iteration": 3,
    "log_likelihood": -5.0,
    "resolution_A": 21.0,
    "finished": False,
    "radial": {"q_inv_A": [0.01, 0.02], "intensity": [3.0, 1.0], "half_correlation": [0.9, 0.5]},
}
ORIENTATIONS = {"quaternion": random_uniform(50, 1), "fluence": np.ones(50)}


def png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=50)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "n_models", [0, 1, pytest.param(3, marks=pytest.mark.slow(reason="six are drawn every time")), 6]
)
def test_any_number_of_models_is_drawn(n_models: int) -> None:
    figure = plot_run([INTENSITY] * n_models, [STEP], ORIENTATIONS, "virus")
    assert png(figure).startswith(b"\x89PNG")
    images = [axes for axes in figure.axes if axes.images]
    assert len(images) == 3 * min(n_models, 4)
    if n_models:
        np.testing.assert_allclose(images[0].images[0].get_array(), INTENSITY.values[:, :, 4].T)


def test_the_title_says_where_the_run_stands() -> None:
    assert plot_run([INTENSITY], [STEP], ORIENTATIONS, "a$b").get_suptitle() == (
        "a\\$b\niteration 3, data to 21 Å (not finished)"
    )
    ended = STEP | {"finished": True, "agrees_to_A": 34.0}
    done = plot_run([INTENSITY] * 2, [ended], ORIENTATIONS, "run").get_suptitle()
    assert done == "run\n2 models, iteration 3, halves agree to 34 Å (0.5), data to 21 Å"


def test_a_run_without_a_step_is_drawn_and_says_so() -> None:
    figure = plot_run([], [], {}, "fresh")
    assert "no iteration is done" in figure.get_suptitle()
    assert png(figure).startswith(b"\x89PNG")
