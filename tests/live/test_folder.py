"""The folder of a live run: its detector may change, and a map that cannot go on is set aside."""

import json
from pathlib import Path

import pytest

from orienteer.detector.square import square_detector
from orienteer.live.folder import LiveFolder
from orienteer.run.events import read_events
from orienteer.run.input import hash_detector
from orienteer.run.settings import Settings

NEAR, FAR = square_detector(4, 0.001, 0.1), square_detector(4, 0.001, 0.2)


@pytest.fixture
def folder(tmp_path: Path) -> LiveFolder:
    live = LiveFolder(tmp_path / "run")
    live.make()
    live.begin({"sources": {"a": "nowhere"}}, Settings())
    return live


def reasons(folder: LiveFolder) -> list[str]:
    return [event["reason"] for event in read_events(folder.log.path) if "reason" in event]


def test_another_detector_replaces_the_one_that_is_there_and_the_log_says_so(folder: LiveFolder) -> None:
    assert folder.read_detector() is None
    for detector in (NEAR, NEAR, FAR):
        folder.meet_source((4, 4), detector)
    found = folder.read_detector()
    assert found is not None
    assert hash_detector(found) == hash_detector(FAR)
    assert reasons(folder) == ["the detector has changed."]
    folder.meet_source((4, 4), None)
    assert folder.read_detector() is not None


def test_a_map_of_another_detector_is_set_aside_and_one_of_this_is_not(folder: LiveFolder) -> None:
    folder.set_aside_map_of_another(FAR)  # there is none yet
    for _ in range(2):
        folder.map.mkdir()
        described = {
            "format": "orienteer-run", "version": 1, "run_id": "x", "method": "emc", "seed": 0,
            "device": "cpu", "settings_hash": "", "input": {"detector": hash_detector(NEAR)},
        }  # fmt: skip
        (folder.map / "run.json").write_text(json.dumps(described))
        folder.set_aside_map_of_another(NEAR)
        assert folder.map.is_dir()
        folder.set_aside_map_of_another(FAR)
        assert not folder.map.exists()
    assert (folder.path / "map-1" / "run.json").exists()
    assert (folder.path / "map-2" / "run.json").exists()
    assert reasons(folder)[0] == "the map is now in map-1: it was begun with another detector."
