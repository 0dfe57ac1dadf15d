"""Tags of frames in a campaign: what was said last holds, and runs are found by them."""

import threading

import pytest
from sqlalchemy import select

from orienteer.campaign.campaign import Campaign
from orienteer.campaign.schema import run
from orienteer.errors import SettingsError

LARGEST = 2**64 - 1


def test_what_was_said_last_of_the_frames_of_a_run_holds(campaign: Campaign) -> None:
    campaign.add_run("r1")
    campaign.add_run("r2")
    campaign.put_frame_tags("r2", {"bright": [5]})
    campaign.put_frame_tags("r1", {"bright": [7, LARGEST, 7], "jet": [1]})
    assert campaign.frame_tags("r1") == {"bright": [7, LARGEST], "jet": [1]}
    for _ in range(2):
        campaign.put_frame_tags("r1", {"bright": [LARGEST, 2]})
    assert campaign.frame_tags("r1") == {"bright": [2, LARGEST]}
    assert campaign.run("r1")["frame_tags"] == {"bright": 2}
    assert campaign.frame_tags("r2") == {"bright": [5]}
    campaign.put_frame_tags("r1", {})
    assert campaign.frame_tags("r1") == {}


def test_a_run_is_found_by_the_tags_of_its_frames(campaign: Campaign) -> None:
    campaign.add_run("r1")
    campaign.add_run("r2")
    campaign.put_frame_tags("r2", {"Two Particles": [5]})
    assert [run["name"] for run in campaign.runs(search="two part")[1]] == ["r2"]


def test_saying_the_same_again_is_no_change_of_a_run(campaign: Campaign) -> None:
    campaign.add_run("r1")
    campaign.put_frame_tags("r1", {"bright": [5]})
    changed = select(run.c.modified_s).where(run.c.name == "r1")
    before = campaign.database.read(lambda connection: connection.execute(changed).scalar())
    campaign.put_frame_tags("r1", {"bright": [5]})
    assert campaign.database.read(lambda connection: connection.execute(changed).scalar()) == before


def test_what_is_no_tag_is_refused_and_changes_nothing(campaign: Campaign) -> None:
    campaign.add_run("r1")
    campaign.put_frame_tags("r1", {"bright": [5]})
    with pytest.raises(SettingsError, match="a tag is"):
        campaign.put_frame_tags("r1", {"a\x07": [1]})
    assert campaign.frame_tags("r1") == {"bright": [5]}


def test_two_that_say_it_at_the_same_time_do_not_clash(campaign: Campaign) -> None:
    campaign.add_run("r1")
    failures: list[Exception] = []

    def put() -> None:
        try:
            for i in range(5):
                campaign.put_frame_tags("r1", {"bright": list(range(20 + i))})
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=put) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert campaign.frame_tags("r1") == {"bright": list(range(24))}
