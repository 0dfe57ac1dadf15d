"""What a reconstruction shows: a moving picture on a terminal, one line per step in a log file."""

import io
import math
import re
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from rich.console import Console

from orienteer.cli import live_display
from orienteer.cli.live_display import PLAIN_BARS, PLOT_WIDTH, in_a_line, radial_plot, show_reconstruction
from orienteer.compute.progress import steps

RADIAL = {
    "q_inv_A": [0.0, 0.01, 0.02, 0.03, 0.04],
    "intensity": [None, 1000.0, 100.0, 10.0, 1.0],
    "half_correlation": [None, 1.0, 0.9, 0.5, 0.0],
}


@dataclass(frozen=True)
class FakeStep:
    iteration: int = 7
    stage: int = 2
    n_stages: int = 5
    log_likelihood: float = -1234.567
    change: float = 0.000321
    inverse_temperature: float = 0.25
    n_rotations: int = 25_680
    perplexity: float = 12.5
    resolution_A: float = 21.4
    agrees_to_A: float | None = 34.5
    sentinel_agreement_deg: float | None = 3.21
    seconds: float = 0.85
    seconds_left: float | None = 130.0
    radial: dict[str, Any] = field(default_factory=lambda: RADIAL)


def test_a_log_file_gets_one_line_with_every_number() -> None:
    line = in_a_line(FakeStep())
    for words in (
        "step 7", "stage 2/5", "log-likelihood -1,234.57", "change 0.00032", "temperature 4",
        "poses 25,680", "poses per frame 12.5", "poses agree to 3.2 deg", "halves agree to 34.5 A",
        "data to 21.4 A",
        "time 0.85 s", "left 2:10 min",
    ):  # fmt: skip
        assert words in line
    assert "\n" not in line


def test_what_is_not_known_yet_is_left_out() -> None:
    unknown: dict[str, Any] = {"sentinel_agreement_deg": None, "agrees_to_A": None, "seconds_left": None}
    line = in_a_line(replace(FakeStep(), change=math.nan, **unknown))
    for word in ("agree", "left", "change", "nan", "None"):
        assert word not in line


def test_without_a_terminal_each_step_is_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    with show_reconstruction("virus") as show:
        show(FakeStep(iteration=1))
        show(FakeStep(iteration=2))
    printed = capsys.readouterr()
    assert printed.out == ""
    assert [line[:6] for line in printed.err.splitlines()] == ["step 1", "step 2"]


def test_without_a_terminal_a_step_says_of_which_run_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    with show_reconstruction("half 2: 60 frames", "half 2") as show:
        show(FakeStep(iteration=3))
    assert capsys.readouterr().err.startswith("half 2  step 3  ")


@pytest.mark.parametrize("changes", [{"iteration": 1}, {"perplexity": 5000.0}])
def test_poses_of_frames_that_are_still_spread_are_not_compared(changes: dict[str, Any]) -> None:
    assert "agree to 3.2" in in_a_line(FakeStep())
    assert "poses agree" not in in_a_line(replace(FakeStep(), **changes))


@pytest.mark.parametrize(
    ("width", "left_out"),
    [
        (120, ()),
        (100, ()),
        (80, ("0.85 s", "21.4 A", "25,680")),
        (60, ("0.85 s", "21.4 A", "25,680", "2/5", "3.2 deg")),
    ],
)
def test_a_terminal_shows_the_last_steps_the_curve_and_what_is_done(
    monkeypatch: pytest.MonkeyPatch, width: int, left_out: tuple[str, ...]
) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=width, height=40)
    monkeypatch.setattr(live_display, "messages", console)
    with show_reconstruction("runs/[virus]") as show:
        for i in range(1, 12):
            show(FakeStep(iteration=i, log_likelihood=-1000.0 - i))
        assert list(steps([1, 2], "Scoring")) == [1, 2]
    shown = screen.getvalue()
    last = shown[shown.rindex("log-") :]
    assert "runs/[virus]" in shown
    assert "-1,011.00" in last
    assert "-1,004.00" in last
    assert "-1,003.00" not in last
    assert "Scoring: 2 of 2" in last
    assert "█" in last
    for words in ("0.00032", "12.5", "34.5 A", "2:10 min"):  # what matters is there at any width
        assert words in last
    for words in ("0.85 s", "21.4 A", "25,680", "2/5", "3.2 deg"):
        assert (words in last) == (words not in left_out)
    assert "…" not in last
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", last)
    assert max(len(line.rstrip()) for line in plain.splitlines()) <= width


def test_bars_fall_with_the_intensity_and_name_both_ends() -> None:
    blank, *lines, ends = radial_plot(RADIAL)
    assert blank == ""
    label, top = lines[0].split()
    assert label == "1,000"
    assert set(top) == {"█"}
    label, bottom = lines[5].split()
    assert label == "1"
    assert len(bottom) == PLOT_WIDTH
    assert (bottom[0], bottom[-1]) == ("█", "▁")
    label, halves = lines[6].split()
    assert label == "halves"
    assert [*dict.fromkeys(halves)] == ["█", "▇", "▄", "▁"]
    assert ends.split() == ["100", "A", "25", "A"]
    assert len({len(line) for line in (lines[0].ljust(len(ends)), lines[5], lines[6], ends)}) == 1


def test_there_is_no_curve_of_nothing() -> None:
    assert radial_plot({}) == []
    assert radial_plot({"q_inv_A": [0.1, 0.2], "intensity": [0.0, None]}) == []
    assert radial_plot({"q_inv_A": [0.1, 0.2], "intensity": [math.nan, math.inf]}) == []


def test_halves_without_a_value_have_no_bar() -> None:
    lines = radial_plot({"q_inv_A": [0.1, 0.2], "intensity": [2.0, 1.0], "half_correlation": [0.5, math.nan]})
    assert lines[7] == f"{'halves':>8} {'▄' * (PLOT_WIDTH // 2)}{' ' * (PLOT_WIDTH // 2)}"
    assert len(radial_plot({"q_inv_A": [0.1, 0.2], "intensity": [2.0, 1.0], "half_correlation": []})) == 8


def test_a_flat_curve_and_a_terminal_without_unicode_are_fine() -> None:
    lines = radial_plot({"q_inv_A": [0.1, 0.2], "intensity": [5.0, 5.0]}, PLAIN_BARS)
    assert all(line.isascii() for line in lines)
    wide = radial_plot({"q_inv_A": list(range(500)), "intensity": [1.0 + i for i in range(500)]})
    assert max(map(len, wide)) <= 70
