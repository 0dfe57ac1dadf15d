"""A growing run is fed into a campaign exactly once, by however many feeders."""

import threading
from typing import Any

import numpy as np

from orienteer.campaign.campaign import Campaign
from orienteer.campaign.feeding import feed


def reader(n: int) -> Any:
    def read(first: int, at_most: int) -> dict[str, Any]:
        number = np.arange(first, min(n, first + at_most))
        return {"event_id": number.astype(np.uint64), "is_hit": number % 3 == 0}

    return read


def test_only_what_is_new_is_added(campaign: Campaign) -> None:
    campaign.add_run("r1")
    assert feed(campaign, "r1", reader(250), at_most=100) == 250
    assert feed(campaign, "r1", reader(250), at_most=70) == 0
    assert feed(campaign, "r1", reader(300), at_most=70) == 50
    assert feed(campaign, "r1", lambda first, at_most: {}) == 0
    np.testing.assert_array_equal(campaign.shots("r1", ["event_id"])["event_id"], np.arange(300))


def test_feeders_that_read_the_same_shots_add_them_once(campaign: Campaign, address: str) -> None:
    campaign.add_run("r1")
    added: list[int] = []

    def work(at_most: int) -> None:
        with Campaign.open(address) as own:
            added.append(feed(own, "r1", reader(2000), at_most))

    threads = [threading.Thread(target=work, args=(n,)) for n in (50, 70, 110)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(added) == 2000
    np.testing.assert_array_equal(np.sort(campaign.shots("r1", ["event_id"])["event_id"]), np.arange(2000))
