"""Progress bars: with the time left on a terminal, nothing elsewhere."""

import io

import pytest
from rich.console import Console

from orienteer.cli import progress
from orienteer.compute.progress import listening, steps
from orienteer.fourier.sampled_transform import SampledTransform
from orienteer.particle.bodies import sphere


def test_nothing_is_printed_when_output_is_not_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(progress.track([1, 2, 3], "Working", 3)) == [1, 2, 3]
    assert capsys.readouterr() == ("", "")


def test_a_terminal_shows_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(progress, "messages", Console(file=screen, force_terminal=True, width=100))
    assert list(progress.track(["ab", "c"], "Working", 3, size=len)) == ["ab", "c"]
    assert "Working" in screen.getvalue()
    assert "3/3" in screen.getvalue()


def test_work_inside_moves_one_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(progress, "messages", Console(file=screen, force_terminal=True, width=100))
    with progress.show_steps("Preparing"):
        assert list(steps(range(4), "Sawing")) == [0, 1, 2, 3]
    assert "Sawing" in screen.getvalue()
    assert "4/4" in screen.getvalue()


def test_the_preparation_of_a_particle_tells_its_steps() -> None:
    heard: list[tuple[str, int, int]] = []
    with listening(lambda *step: heard.append(step)):
        SampledTransform.from_particle(sphere(30.0), 0.05)
    assert {what for what, _, _ in heard} == {"Transform of the body", "Finer grid"}
    assert all(0 <= done <= total for _, done, total in heard)
