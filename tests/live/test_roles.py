"""The processes of a live run, where nothing comes."""

import time
from pathlib import Path
from typing import Any

import pytest

from orienteer.live import looking, roles, worker
from orienteer.live.folder import LiveFolder
from orienteer.run.settings import Settings


class NobodyStops:
    """No signal comes."""

    is_requested = False


STOP: Any = NobodyStops()
# What the worker imports, so that it is there before the clock of a test runs.
LOADED = (looking, worker)


@pytest.fixture
def folder(tmp_path: Path) -> LiveFolder:
    live = LiveFolder(tmp_path / "run")
    live.make()
    live.begin({"sources": {"a": "tcp://127.0.0.1:9"}}, Settings())
    return live


def test_a_run_whose_source_never_answers_ends_with_its_time(
    folder: LiveFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    from orienteer.stream.base import NoAnswer

    asked = []

    def nobody(*_: object) -> None:
        asked.append(time.time())
        time.sleep(0.01)
        raise NoAnswer("nobody answers.")

    monkeypatch.setattr(roles, "open_sources", nobody)
    monkeypatch.setenv(roles.UNTIL_VARIABLE, str(time.monotonic() + 1.5))
    assert roles.receive(folder, STOP) == roles.DONE
    assert asked
    assert folder.read_counters() == {"is_finished": True}


def test_a_map_that_will_get_no_hits_does_not_wait_for_them(folder: LiveFolder) -> None:
    folder.write_counters({"is_finished": True})
    assert roles._wait_for_hits(folder, STOP) is None
