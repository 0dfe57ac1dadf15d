"""Where a live run stands: working, stopped or finished, and what it has received."""

from pathlib import Path

import pytest

from orienteer.cli.status import find_runs
from orienteer.live.folder import LiveFolder
from orienteer.live.standing import read_live_standing
from orienteer.run.lock import RunLock
from orienteer.run.settings import Settings


@pytest.fixture
def folder(tmp_path: Path) -> LiveFolder:
    live = LiveFolder(tmp_path / "shift1")
    live.make()
    live.begin({"sources": {"a": "tcp://host:5555"}}, Settings())
    live.log.append("began")
    live.write_counters({"received": 12345, "hits": 678, "is_finished": False})
    return live


def test_it_works_while_somebody_supervises_it(folder: LiveFolder) -> None:
    with RunLock(folder.path):
        standing = read_live_standing(folder.path)
    assert (standing.state, standing.method) == ("working", "live")
    assert standing.reason == "12,345 events received, 678 hits"
    assert read_live_standing(folder.path).state == "stopped"


def test_it_has_finished_when_nothing_more_is_to_come(folder: LiveFolder) -> None:
    folder.write_counters({"received": 12345, "hits": 678, "is_finished": True})
    assert read_live_standing(folder.path).state == "stopped"  # the map is not done
    folder.log.append("finished")
    assert read_live_standing(folder.path).state == "finished"


def test_live_runs_are_found_below_a_folder(folder: LiveFolder) -> None:
    assert find_runs([folder.path.parent]) == [folder.path]


def test_a_description_that_cannot_be_read_is_told(folder: LiveFolder) -> None:
    folder.description.write_text("{")
    standing = read_live_standing(folder.path)
    assert standing.state == "failed"
    assert "live.json" in standing.reason
