"""The weather plot: rows of ranks, in colours that tell."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from orienteer.plot.weather import COLOURS, plot_weather
from orienteer.scaling.weather import STAGES, Weather


def test_every_stage_has_a_colour_of_its_own() -> None:
    assert set(COLOURS) == set(STAGES)
    assert len(set(COLOURS.values())) == len(STAGES)


def test_a_slow_rank_is_brown_and_a_stall_is_red(tmp_path: Path, write_logs: Callable[..., None]) -> None:
    write_logs(tmp_path, n_ranks=4, slow={2: 3.0}, stall=(1, 5.0, (1,)))
    figure = plot_weather(Weather.read(tmp_path), ["One $ sentence."], "run")
    figure.savefig(tmp_path / "weather.png")
    image = next(image for axes in figure.axes for image in axes.images).get_array()
    assert image.shape[0] == 4
    red_over_green = (image[..., 0] - image[..., 1]).mean(axis=1)
    assert red_over_green[2] > 0.1 > red_over_green[0]  # brown, and not green
    assert (np.abs(image[1] - np.array([0xE3, 0x1A, 0x1C]) / 255).max(axis=1) < 0.01).any()


def test_many_ranks_and_an_empty_log_are_drawn(tmp_path: Path, write_logs: Callable[..., None]) -> None:
    write_logs(tmp_path / "many", n_ranks=200, n_iterations=1, n_batches=1)
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "events_rank_000.jsonl").write_text("")
    for name in ("many", "none"):
        plot_weather(Weather.read(tmp_path / name)).savefig(tmp_path / f"{name}.svg")
        assert (tmp_path / f"{name}.svg").stat().st_size > 1000
