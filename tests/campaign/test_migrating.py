"""Old layouts are brought up to date with all that is in them; newer ones and other databases are refused."""

import shutil
import sqlite3
import subprocess
import sys
import textwrap
import uuid
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, inspect, text

from orienteer.campaign import migrating
from orienteer.campaign.address import CampaignError, parse_address
from orienteer.campaign.campaign import Campaign
from orienteer.campaign.database import Database
from orienteer.campaign.migrating import VERSION_TABLE, migrate, newest_version, read_version
from orienteer.campaign.schema import metadata
from orienteer.errors import FileError

FOLDER = migrating._FOLDER
HEAD = f"""
import sqlalchemy as sa
from alembic import op

revision = "made up"
down_revision = "{newest_version()}"


def upgrade() -> None:
"""
BOTH = """\
op.create_table("weather", sa.Column("id", sa.Integer, primary_key=True))
op.add_column("run", sa.Column("humidity", sa.Double, nullable=False, server_default="0.5"))
"""


def has_weather(connection: Connection) -> bool:
    return inspect(connection).has_table("weather")


def test_the_migrations_lead_to_the_tables_of_the_schema(campaign: Campaign) -> None:
    def differences(connection: Any) -> list[Any]:
        options = {"version_table": VERSION_TABLE, "compare_type": True}
        return list(compare_metadata(MigrationContext.configure(connection, opts=options), metadata))

    assert campaign.database.read(differences) == []


@pytest.fixture
def later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes up an Orienteer that has one more layout, to which this code leads."""

    def come(code: str) -> None:
        folder = tmp_path / uuid.uuid4().hex
        shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "version_made_up.py").write_text(f"{HEAD}{textwrap.indent(code, '    ')}")
        monkeypatch.setattr(migrating, "_FOLDER", folder)

    return come


def test_an_older_layout_is_migrated_with_what_is_in_it(address: str, later: Any) -> None:
    with Campaign.open(address, create=True) as campaign:
        campaign.add_run("r0001", sample="virus")
        campaign.add_shots("r0001", {"event_id": np.array([7]), "photons": np.array([12.5])}, segment="a")
    later(BOTH)
    with Campaign.open(address) as campaign:
        assert read_version(campaign.database) == newest_version() == "made up"
        assert campaign.run("r0001")["sample"] == "virus"
        old = campaign.shots("r0001", ["event_id", "photons"])
        assert (old["event_id"].tolist(), old["photons"].tolist()) == ([7], [12.5])
        assert campaign.database.read(lambda c: c.execute(text("SELECT humidity FROM run")).all()) == [(0.5,)]
        assert campaign.database.read(has_weather)
        assert campaign.add_shots("r0001", {"event_id": np.array([8])}, segment="b")
        assert campaign.n_shots("r0001") == 2


def test_a_campaign_of_the_first_layout_gets_histograms_of_the_shots_that_it_has(
    address: str, make_shots: Any
) -> None:
    with Campaign.open(address, create=True) as campaign:
        campaign.add_run("r0001")
        campaign.add_shots("r0001", make_shots(300), segment="a")
        campaign.add_shots("r0001", make_shots(200, 300), segment="b")
        names = list(campaign.run("r0001")["columns"])
        asked = {name: campaign.histogram(name, "r0001", 40) for name in names}
        sums = campaign.run("r0001")["columns"]

        def back(connection: Connection) -> None:
            for name in ("exponent", "first", "counts"):
                connection.execute(text(f'ALTER TABLE shot_column DROP COLUMN "{name}"'))
            connection.execute(text("DROP TABLE frame_tag"))
            connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '0001'"))

        campaign.database.write(back)
    with Campaign.open(address) as campaign:
        assert read_version(campaign.database) == newest_version()
        assert campaign.run("r0001")["columns"] == sums
        assert {name: campaign.histogram(name, "r0001", 40) for name in names} == asked
        campaign.add_shots("r0001", make_shots(100, 500), segment="c")
        assert sum(campaign.histogram("photons", "r0001")["counts"]) == 600


def test_a_campaign_whose_first_layout_had_histograms_already_keeps_them(
    address: str, make_shots: Any
) -> None:
    with Campaign.open(address, create=True) as campaign:
        campaign.add_run("r0001")
        campaign.add_shots("r0001", make_shots(300), segment="a")
        before = campaign.histogram("photons")
        campaign.database.write(
            lambda connection: connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '0002'"))
        )
    with Campaign.open(address) as campaign:
        assert read_version(campaign.database) == newest_version()
        assert campaign.histogram("photons") == before


def test_a_file_is_copied_before_it_is_migrated(tmp_path: Path, later: Any) -> None:
    path = tmp_path / "campaign.db"
    with Campaign.open(path, create=True) as campaign:
        campaign.add_sample("old")
    version = newest_version()
    assert not list(tmp_path.glob("*layout*"))
    later(BOTH)
    Campaign.open(path).close()
    with closing(sqlite3.connect(tmp_path / f"campaign.layout-{version}.db")) as copy:
        assert copy.execute("SELECT name FROM sample").fetchall() == [("old",)]
        assert copy.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchall() == [(version,)]
        assert not copy.execute("SELECT name FROM sqlite_master WHERE name = 'weather'").fetchall()


def test_a_migration_that_fails_changes_nothing(address: str, later: Any) -> None:
    Campaign.open(address, create=True).close()
    version = newest_version()
    database = Database(parse_address(address))
    later(f"{BOTH}raise RuntimeError('no.')\n")
    with pytest.raises(RuntimeError, match=r"no\."):
        migrate(database)
    assert read_version(database) == version
    assert not database.read(has_weather)
    later(BOTH)
    migrate(database)
    assert read_version(database) == "made up"
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


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("ALTER TABLE run RENAME COLUMN kind TO colour", "its table 'run' has no column 'kind'"),
        ("ALTER TABLE tag RENAME TO label", "it has no table 'tag'"),
    ],
)
def test_tables_that_somebody_has_changed_are_told_when_the_campaign_is_opened(
    address: str, change: str, words: str
) -> None:
    Campaign.open(address, create=True).close()
    database = Database(parse_address(address))
    database.write(lambda connection: connection.execute(text(change)))
    database.close()
    with pytest.raises(CampaignError, match=words) as told:
        Campaign.open(address)
    assert "an earlier copy" in told.value.hint


def test_another_database_is_not_taken_for_a_campaign(address: str) -> None:
    database = Database(parse_address(address))
    database.write(lambda connection: connection.execute(text("CREATE TABLE run (something INTEGER)")))
    with pytest.raises(CampaignError, match="there is no campaign"):
        Campaign.open(address)
    with pytest.raises(CampaignError, match="this database is not a campaign"):
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
    code = (
        "import sys; from orienteer.campaign.campaign import Campaign\n"
        "with Campaign.open(sys.argv[1], create=True) as c: c.add_run(sys.argv[2], sample='one')"
    )
    started = [subprocess.Popen([sys.executable, "-c", code, address, f"r{i}"]) for i in range(3)]
    try:
        assert [process.wait(240) for process in started] == [0] * 3
    finally:
        for process in started:
            process.kill()
    with Campaign.open(address) as campaign:
        assert campaign.runs()[0] == 3
        assert len(campaign.overview()["samples"]) == 1
