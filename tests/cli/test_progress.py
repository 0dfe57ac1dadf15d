"""Progress bars: with the time left on a terminal, nothing elsewhere."""

import io

import pytest
from rich.console import Console

from orienteer.cli import progress


def test_nothing_is_printed_when_output_is_not_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(progress.track([1, 2, 3], "Working", 3)) == [1, 2, 3]
    assert capsys.readouterr() == ("", "")


def test_a_terminal_shows_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(progress, "messages", Console(file=screen, force_terminal=True, width=100))
    assert list(progress.track(["ab", "c"], "Working", 3, size=len)) == ["ab", "c"]
    assert "Working" in screen.getvalue()
    assert "3/3" in screen.getvalue()
