"""What is shown of a live run: counters that anybody can add up, rates, sizes and last words."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from orienteer.cli import live_counters
from orienteer.cli.live_counters import bars, in_one_line, picture, show_live
from orienteer.live.folder import LiveFolder
from orienteer.live.summary import live_summary


@pytest.fixture
def summary(tmp_path: Path) -> dict[str, Any]:
    told = live_summary(tmp_path)  # of a run that has received nothing
    told["counters"] |= {"received": 1200, "filtered": 200, "processed": 1000, "malformed": 3}
    told["hit_rate"] = {"t_s": [0, 60], "shots": [600, 600], "hits": [30, 60], "singles": [20, 40]}
    told["size_A"]["counts"][40:43] = [1, 8, 2]
    told |= {"hits": 90, "kinds": {"single": 60, "junk": 30}}
    return told


def test_a_line_tells_all_counters_and_only_what_went_wrong(summary: dict[str, Any]) -> None:
    line = in_one_line(summary)
    assert line.startswith("1,200 received, 200 filtered, 0 dropped, 1,000 processed, 3 malformed; 90 hits")
    assert "duplicates" not in line


def test_a_picture_tells_counters_kinds_sizes_and_words(summary: dict[str, Any]) -> None:
    console = Console(width=100, record=True, file=None, force_terminal=False)
    with console.capture() as captured:
        console.print(picture("a -> b", summary, {"worker": "receives", "map": "round 2 with 747 hits"}))
    text = captured.get()
    assert "1,200 received" in text
    assert "90 (9.00% of shots)" in text
    assert "30 junk, 60 single" in text
    assert "hit rate  ▄█" in text
    assert "sizes     178 A ▁█▂ 221 A" in text
    assert "round 2 with 747 hits" in text


def test_bars_are_as_high_as_their_numbers() -> None:
    assert bars([0, 1, 2]) == " ▄█"
    assert bars([]) == ""
    assert bars([0, 0]) == "  "


def test_without_a_terminal_a_line_comes_when_something_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(live_counters, "_PLAIN_EVERY_S", 0.0)
    fake = SimpleNamespace(is_terminal=False, print=lambda text, **_: said.append(text))
    monkeypatch.setattr(live_counters, "messages", fake)
    child = SimpleNamespace(role="worker", state="working", words="waits for the source")
    supervisor: Any = SimpleNamespace(children=[child])
    with show_live("a -> b") as show:
        for _ in range(3):
            show(LiveFolder(tmp_path), supervisor)
        child.state, child.words = "done", "has received everything"
        show(LiveFolder(tmp_path), supervisor)
    assert said[:2] == ["a -> b", "worker: waits for the source"]
    assert said[3:] == ["worker: done: has received everything"]
