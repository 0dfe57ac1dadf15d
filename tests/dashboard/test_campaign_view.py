"""The campaign on the page: its sums, its runs wherever they are, and its tags."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sqlalchemy", reason="campaigns need: pip install 'orienteer[campaign]'")

from orienteer.campaign.campaign import Campaign
from orienteer.dashboard import campaign_book
from orienteer.dashboard.campaign_book import CampaignBook


@pytest.fixture
def database(tmp_path: Path, root: Path) -> Path:
    """A campaign that knows the run below the root, and one that is elsewhere, with shots."""
    path = tmp_path / "campaign.db"
    with Campaign.open(path, create=True) as campaign:
        campaign.add_run("virus 7", folder=root / "virus", sample="MS2", kind="emc")
        campaign.add_run("far", folder="/nowhere/at/all", kind="live")
        columns = {"event_id": np.arange(100, dtype=np.uint64), "size_A": np.linspace(100, 200, 100)}
        campaign.add_shots("far", {**columns, "is_hit": np.arange(100) % 4 == 0}, "000000000")
    return path


def test_the_campaign_is_told_in_sums(root: Path, database: Path, made_up: SimpleNamespace) -> None:
    with made_up.serving(root, campaign=str(database)) as (_, client):
        told = client.get("/api/campaign").json()
        assert (told["n_runs"], told["n_shots"]) == (2, 100)
        assert told["samples"][0]["name"] == "MS2"
        shots = client.get(
            "/api/campaign/shots", params={"column": "size_A", "run": "far", "bins": 10}
        ).json()
        assert sum(shots["counts"]) == 100
        assert 5 <= len(shots["counts"]) <= 10
        assert told["columns"] == ["is_hit", "size_A"]
        assert client.get("/api/campaign/shots", params={"column": "a;drop table"}).status_code == 422
        assert client.get("/api/campaign/shots", params={"column": "size_A", "run": "x"}).status_code == 422


def test_runs_have_what_the_campaign_knows_and_others_are_listed(
    root: Path, database: Path, made_up: SimpleNamespace
) -> None:
    with made_up.serving(root, campaign=str(database)) as (_, client):
        rows = {row["name"]: row for row in client.get("/api/runs").json()["runs"]}
        assert set(rows) == {"virus", "far"}
        assert rows["virus"]["sample"] == "MS2"
        assert rows["virus"]["campaign_run"] == "virus 7"
        assert (rows["far"]["status"], rows["far"]["hit_rate"]) == ("elsewhere", 0.25)
        far = rows["far"]["id"]
        assert client.get(f"/api/runs/{far}").json()["has"] == {}
        assert client.get(f"/api/runs/{far}/steps").status_code == 404


def test_tags_and_notes_go_to_the_campaign(root: Path, database: Path, made_up: SimpleNamespace) -> None:
    with made_up.serving(root, campaign=str(database)) as (_, client):
        run = made_up.run_id(client, "virus")
        assert client.post(f"/api/runs/{run}/tags", json={"add": ["best"]}).json() == {"tags": ["best"]}
        notes = client.post(f"/api/runs/{run}/note", json={"text": "look here"}).json()["notes"]
        assert notes[0]["text"] == "look here"
        assert client.get("/api/runs", params={"tag": "best"}).json()["total"] == 1
    with Campaign.open(database) as campaign:
        assert campaign.run("virus 7")["tags"] == ["best"]
    assert not (root / "virus" / "dashboard.json").exists()


def test_a_run_that_the_campaign_does_not_know_is_added_when_it_is_tagged(
    root: Path, database: Path, made_up: SimpleNamespace
) -> None:
    made_up.write_run(root / "far")
    with made_up.serving(root, campaign=str(database)) as (_, client):
        rows = client.get("/api/runs").json()["runs"]
        here = next(row["id"] for row in rows if row["name"] == "far" and row["status"] == "finished")
        client.post(f"/api/runs/{here}/tags", json={"add": ["new"]})
    with Campaign.open(database) as campaign:
        assert campaign.run("root far")["tags"] == ["new"]


def test_tags_of_frames_are_told_to_the_campaign(
    root: Path, database: Path, made_up: SimpleNamespace
) -> None:
    with made_up.serving(root, campaign=str(database)) as (_, client):
        url = f"/api/runs/{made_up.run_id(client, 'virus')}/frame-tags"
        client.post(url, json={"event_ids": [str(2**64 - 1), "7"], "add": ["ice"]})
    with Campaign.open(database) as campaign:
        assert campaign.frame_tags("virus 7") == {"ice": [7, 2**64 - 1]}


def test_what_is_written_while_the_campaign_is_read_is_read_again(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = CampaignBook(str(database))
    original = campaign_book._all_runs

    def slow(campaign: Campaign) -> list[dict[str, Any]]:
        found = original(campaign)
        if len(found) == 2:
            campaign.add_run("third")
            book.forget()
        return found

    monkeypatch.setattr(campaign_book, "_all_runs", slow)
    assert len(book.runs()) == 2
    assert len(book.runs()) == 3


def test_without_a_campaign_it_is_said(root: Path, made_up: SimpleNamespace) -> None:
    with made_up.serving(root) as (_, client):
        answer = client.get("/api/campaign")
        assert answer.status_code == 404
        assert "--campaign" in answer.json()["hint"]


def test_a_server_of_databases_that_is_away_is_told_and_may_come_back() -> None:
    pytest.importorskip("psycopg", reason="needs psycopg: pip install 'orienteer[postgres]'")
    assert "refused" in CampaignBook("postgresql://nobody@127.0.0.1:1/campaign").check()
    assert CampaignBook("").check() == ""


def test_a_database_that_is_away_does_not_take_the_list_away(
    root: Path, tmp_path: Path, made_up: SimpleNamespace
) -> None:
    (tmp_path / "broken.db").write_bytes(b"no database" * 1000)
    with made_up.serving(root, campaign=str(tmp_path / "broken.db")) as (_, client):
        told = client.get("/api/runs").json()
        assert told["total"] == 1
        assert told["trouble"]
        assert client.get(f"/api/runs/{made_up.run_id(client)}").status_code == 200
        assert client.get("/api/campaign").status_code in (422, 503)
