"""Shots: what is added comes back, sums are those of the rows, and no segment counts twice or by halves."""

import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text

from orienteer.campaign.address import CampaignError
from orienteer.campaign.campaign import Campaign

Make = Callable[..., dict[str, Any]]

# Adds segments of 500 shots to a run for ever, and says so after each.
WRITER = """
import sys, numpy as np
from orienteer.campaign.campaign import Campaign
address, run, begin = sys.argv[1:]
with Campaign.open(address) as campaign:
    for i in range(int(begin), 10_000):
        number = np.arange(500 * i, 500 * i + 500)
        columns = {"event_id": number.astype(np.uint64), "is_hit": number % 10 == 0, "photons": number}
        campaign.add_shots(run, columns, segment=f"{i:06d}")
        print(i, flush=True)
"""


def test_shots_come_back_as_they_were_added(campaign: Campaign, make_shots: Make) -> None:
    campaign.add_run("r1")
    first, second = make_shots(100), make_shots(50, first=100)
    assert campaign.add_shots("r1", first, segment="a")
    assert campaign.add_shots("r1", second, segment="b")
    names = [name for name in first if name != "spectrum"]
    found = campaign.shots("r1", names)
    for name in names:
        given = np.concatenate([first[name], second[name]])
        np.testing.assert_array_equal(found[name], given, err_msg=name)
    assert found["event_id"].dtype == np.uint64
    assert found["is_hit"].dtype == bool
    with pytest.raises(CampaignError, match="column 'nothing'"):
        campaign.shots("r1", ["nothing"])


def test_a_segment_counts_once_and_the_sums_are_those_of_the_rows(
    campaign: Campaign, make_shots: Make
) -> None:
    campaign.add_run("r1")
    campaign.add_run("r2")
    shots = make_shots(100)
    assert campaign.add_shots("r1", shots, segment="a")
    assert not campaign.add_shots("r1", shots, segment="a")
    assert campaign.add_shots("r2", shots, segment="a")
    assert campaign.add_shots("r1", make_shots(30, first=100), segment="b")
    described = campaign.run("r1")
    assert (described["n_shots"], described["n_hits"]) == (130, 13)
    column = campaign.shots("r1", ["size_A"])["size_A"]
    known = column[~np.isnan(column)]
    sums = described["columns"]["size_A"]
    assert sums["n"] == len(known)
    assert sums["least"] == known.min()
    assert sums["most"] == known.max()
    np.testing.assert_allclose(sums["mean"], known.mean())
    assert campaign.overview()["n_shots"] == 230


def test_a_shot_of_which_nobody_knows_is_no_hit(campaign: Campaign) -> None:
    campaign.add_run("r1")
    is_hit = np.array([1.0, np.nan, 0.0])
    assert campaign.add_shots("r1", {"event_id": np.arange(3), "is_hit": is_hit}, segment="a")
    assert campaign.run("r1")["n_hits"] == 1
    np.testing.assert_array_equal(campaign.shots("r1", ["is_hit"])["is_hit"], is_hit)


def test_histograms_are_those_of_numpy(campaign: Campaign, make_shots: Make) -> None:
    for i in range(2):
        campaign.add_run(f"r{i}")
        for part in range(3):
            first = 1000 * i + 200 * part
            campaign.add_shots(f"r{i}", make_shots(200, first=first), segment=f"{part}")
    for run in ("r0", None):
        runs = ["r0", "r1"] if run is None else [run]
        for name in ("photons", "size_A", "kind", "is_hit"):
            column = np.concatenate([campaign.shots(each, [name])[name] for each in runs]).astype(float)
            column = column[~np.isnan(column)]
            found = campaign.histogram(name, run, bins=40)
            assert sum(found["counts"]) == len(column)
            assert len(found["counts"]) <= 40
            assert found["counts"] == np.histogram(column, bins=found["edges"])[0].tolist()
    assert campaign.histogram("kind", "r0")["edges"] == [0, 1, 2, 3, 4]


def test_a_column_without_values_has_no_bins_and_one_that_nobody_knows_is_refused(campaign: Campaign) -> None:
    campaign.add_run("r0")
    with pytest.raises(CampaignError, match="no histogram of 'photons'"):
        campaign.histogram("photons")
    campaign.add_run("r1")
    columns = {"event_id": np.arange(2), "photons": np.arange(2), "humidity": np.array([0.5, np.nan])}
    campaign.add_shots("r1", columns, segment="a")
    assert campaign.histogram("photons", "r0") == {"edges": [], "counts": []}
    # Also of columns that have no name in the table of shots.
    assert campaign.histogram("humidity")["counts"] == [1]
    assert campaign.overview()["columns"] == ["humidity", "photons"]
    with pytest.raises(CampaignError, match="no histogram of 'event_id; DROP"):
        campaign.histogram("event_id; DROP TABLE shot", "r0")


def test_shots_that_make_no_rows_are_refused_and_leave_nothing(campaign: Campaign) -> None:
    campaign.add_run("r1")
    with pytest.raises(CampaignError, match="without event_id"):
        campaign.add_shots("r1", {"photons": np.arange(3)}, segment="a")
    with pytest.raises(CampaignError, match="3 shots, but the column 'photons' has 2"):
        campaign.add_shots("r1", {"event_id": np.arange(3), "photons": np.arange(2)}, segment="a")
    with pytest.raises(CampaignError, match="no run 'r2'"):
        campaign.add_shots("r2", {"event_id": np.arange(3)}, segment="a")
    with pytest.raises(CampaignError, match="no run '77'"):
        campaign.n_shots(77)
    assert campaign.n_shots("r1") == 0
    assert campaign.add_shots("r1", {"event_id": np.zeros(0, np.uint64)}, segment="a")
    assert campaign.add_shots("r1", {"event_id": np.arange(3)}, segment="b")
    assert campaign.n_shots("r1") == 3


@pytest.mark.timeout(600)
def test_writers_that_are_killed_lose_nothing_and_count_nothing_twice(address: str) -> None:
    """Two writers of the same segments are killed in the middle of their work and started again."""
    with Campaign.open(address, create=True) as campaign:
        campaign.add_run("r1")
        said = -1
        for _ in range(2):
            command = [sys.executable, "-c", WRITER, address, "r1", str(max(0, said - 2))]
            writers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
            try:
                for writer in writers:
                    assert writer.stdout is not None
                    said = max(said, int(writer.stdout.readline()))
                time.sleep(0.1)  # so that they are killed anywhere in a segment
            finally:
                for writer in writers:
                    writer.kill()
            for writer in writers:
                rest = writer.communicate()[0].rpartition("\n")[0]  # a line that was cut is no promise
                said = max([said, *map(int, rest.split())])
        described = campaign.run("r1")
        n = described["n_shots"]
        assert n >= 500 * (said + 1)
        assert n % 500 == 0
        events = campaign.shots("r1", ["event_id", "photons"])
        np.testing.assert_array_equal(np.sort(events["event_id"]), np.arange(n))
        assert described["n_hits"] == n // 10
        assert described["columns"]["photons"]["n"] == n
        np.testing.assert_allclose(described["columns"]["photons"]["mean"], (n - 1) / 2)


def test_a_server_that_restarts_is_waited_for(server: Any, make_shots: Make) -> None:
    address = server.make_database(f"c{uuid.uuid4().hex}")
    with Campaign.open(address, create=True) as campaign:
        campaign.add_run("r1")
        for i in range(3):
            assert campaign.add_shots("r1", make_shots(200, first=200 * i), segment=f"{i}")
            server.stop()
            later = threading.Timer(0.5, server.start)
            later.start()
            try:
                assert campaign.n_shots("r1") == 200 * (i + 1)
            finally:
                later.join()  # other tests need the server
        assert campaign.n_shots("r1") == 600
        assert len(campaign.shots("r1", ["event_id"])["event_id"]) == 600


def test_a_server_that_is_not_there_is_said_at_once_and_without_the_password() -> None:
    began = time.monotonic()
    with pytest.raises(CampaignError, match="refused") as refused:
        Campaign.open("postgresql://somebody:secret@127.0.0.1:9/nothing")
    assert time.monotonic() - began < 30
    assert "secret" not in str(refused.value)
    assert "\n" not in refused.value.message


def test_a_full_disk_leaves_the_campaign_as_it_was(tmp_path: Any, make_shots: Make) -> None:
    with Campaign.open(tmp_path / "campaign.db", create=True) as campaign:
        campaign.add_run("r1")
        campaign.add_shots("r1", make_shots(100), segment="a")
        pages = campaign.database.read(lambda c: c.execute(text("PRAGMA page_count")).scalar_one())
        # The limit holds for one connection, and the pool has one for one thread.
        campaign.database.read(lambda c: c.execute(text(f"PRAGMA max_page_count = {pages}")).all())
        with pytest.raises(CampaignError, match="full"):
            campaign.add_shots("r1", make_shots(20_000, first=100), segment="b")
        assert campaign.n_shots("r1") == 100
        campaign.database.read(lambda c: c.execute(text("PRAGMA max_page_count = 1000000")).all())
        assert campaign.add_shots("r1", make_shots(20_000, first=100), segment="b")
