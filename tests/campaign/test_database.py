"""A database that is away is told apart from one that refuses: the first may answer later."""

import socket
from pathlib import Path

import pytest
from sqlalchemy import Connection, make_url

from orienteer.campaign.address import CampaignAway, CampaignError
from orienteer.campaign.campaign import Campaign
from orienteer.campaign.database import Database


def test_a_server_that_does_not_answer_is_away() -> None:
    pytest.importorskip("psycopg", reason="needs psycopg: pip install 'orienteer[postgres]'")
    with socket.socket() as taken:  # a port at which nobody listens
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(CampaignAway, match="the database refused"):
            Campaign.open(f"postgresql://nobody@127.0.0.1:{port}/nothing", create=True, patience_s=0.1)


def test_a_file_that_is_no_database_refuses(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, " * 100)
    with pytest.raises(CampaignError, match="not a database") as refused:
        Campaign.open(path, create=True)
    assert not isinstance(refused.value, CampaignAway)


def test_a_full_disk_is_told_to_be_made_room_on(tmp_path: Path) -> None:
    def fill(connection: Connection) -> None:
        connection.exec_driver_sql("PRAGMA max_page_count = 1")
        connection.exec_driver_sql("CREATE TABLE notes (words)")

    with pytest.raises(CampaignError, match="disk is full") as refused:
        Database(make_url(f"sqlite:///{tmp_path / 'campaign.db'}"), patience_s=0.1).write(fill)
    assert "Make room" in refused.value.hint
