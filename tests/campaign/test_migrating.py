"""Old layouts are brought up to date with all that is in them; newer ones and other databases are refused."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text

from orienteer.campaign.address import CampaignError, parse_address
from orienteer.campaign.campaign import Campaign
from orienteer.campaign.database import Database
from orienteer.campaign.migrating import VERSION_TABLE, migrate, newest_version, read_version
from orienteer.campaign.schema import metadata
from orienteer.errors import FileError


def test_the_migrations_lead_to_the_tables_of_the_schema(campaign: Campaign) -> None:
    def differences(connection: Any) -> list[Any]:
        options = {"version_table": VERSION_TABLE, "compare_type": True}
        return list(compare_metadata(MigrationContext.configure(connection, opts=options), metadata))

    assert campaign.database.read(differences) == []


def test_an_old_layout_is_migrated_with_what_is_in_it(address: str) -> None:
    database = Database(parse_address(address))
    migrate(database, to="0001")
    for added in (
        "INSERT INTO run (name, created_s, modified_s, n_shots) VALUES ('r0001', 1.0, 1.0, 1)",
        "INSERT INTO segment (run_id, name, n_shots) VALUES (1, 'a', 1)",
        "INSERT INTO shot (segment_id, number, event_id, photons) VALUES (1, 0, 7, 12.5)",
    ):
        database.write(lambda connection, added=added: connection.execute(text(added)))  # type: ignore[misc]
    assert read_version(database) == "0001"
    database.close()
    with Campaign.open(address) as campaign:
        assert read_version(campaign.database) == newest_version()
        assert campaign.run("r0001")["name"] == "r0001"
        assert campaign.overview()["jobs"] == []
        old = campaign.shots("r0001", ["event_id", "photons"])
        assert (old["event_id"].tolist(), old["photons"].tolist()) == ([7], [12.5])
        assert campaign.add_shots("r0001", {"event_id": [8], "fate": np.array([1])}, segment="b")
        np.testing.assert_array_equal(campaign.shots("r0001", ["fate"])["fate"], [np.nan, 1])


def test_a_file_is_copied_before_it_is_migrated(tmp_path: Path) -> None:
    path = tmp_path / "campaign.db"
    database = Database(parse_address(path))
    migrate(database, to="0001")
    database.write(lambda connection: connection.execute(text("INSERT INTO sample (name) VALUES ('old')")))
    database.close()
    Campaign.open(path).close()
    with closing(sqlite3.connect(tmp_path / "campaign.layout-0001.db")) as copy:
        assert copy.execute("SELECT name FROM sample").fetchall() == [("old",)]
        assert copy.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchall() == [("0001",)]
        assert not copy.execute("SELECT name FROM sqlite_master WHERE name = 'job'").fetchall()


def test_a_migration_that_fails_changes_nothing(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from alembic import op

    database = Database(parse_address(address))
    migrate(database, to="0001")
    make = op.create_table

    def fail_at_the_second(name: str, *parts: Any, **options: Any) -> Any:
        if name == "job":
            raise CampaignError("no.")
        return make(name, *parts, **options)

    monkeypatch.setattr(op, "create_table", fail_at_the_second)
    with pytest.raises(CampaignError, match=r"no\."):
        migrate(database)
    monkeypatch.undo()
    assert read_version(database) == "0001"
    migrate(database)
    assert read_version(database) == newest_version()
    database.close()


def test_a_newer_layout_is_refused_and_not_touched(address: str) -> None:
    Campaign.open(address, create=True).close()
    database = Database(parse_address(address))
    database.write(
        lambda connection: connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    )
    with pytest.raises(CampaignError, match=r"a newer Orienteer has made this campaign \(layout 9999"):
        Campaign.open(address)
    assert read_version(database) == "9999"
    database.close()


def test_another_database_is_not_taken_for_a_campaign(address: str) -> None:
    database = Database(parse_address(address))
    database.write(lambda connection: connection.execute(text("CREATE TABLE run (something INTEGER)")))
    with pytest.raises(CampaignError, match="there is no campaign"):
        Campaign.open(address)
    with pytest.raises(CampaignError, match="something else than a campaign"):
        Campaign.open(address, create=True)
    database.close()


def test_what_is_no_database_is_said_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, " * 100)
    with pytest.raises(CampaignError, match="not a database") as refused:
        Campaign.open(path, create=True)
    assert "\n" not in refused.value.message
    with pytest.raises(FileError, match="no such campaign"):
        Campaign.open(tmp_path / "missing.db")
    assert not (tmp_path / "missing.db").exists()


def test_several_that_make_a_campaign_at_once_make_one(address: str) -> None:
    import subprocess
    import sys

    code = (
        "import sys; from orienteer.campaign.campaign import Campaign\n"
        "with Campaign.open(sys.argv[1], create=True) as c: c.add_run(sys.argv[2], sample='one')"
    )
    started = [subprocess.Popen([sys.executable, "-c", code, address, f"r{i}"]) for i in range(4)]
    assert [process.wait(120) for process in started] == [0] * 4
    with Campaign.open(address) as campaign:
        assert campaign.runs()[0] == 4
        assert len(campaign.overview()["samples"]) == 1
