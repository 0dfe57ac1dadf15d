"""A database that is away is told apart from one that refuses: the first may answer later."""

import socket
from pathlib import Path

import pytest

from orienteer.campaign.address import CampaignAway, CampaignError
from orienteer.campaign.campaign import Campaign


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
