"""Bring a database to the layout of this version when it is opened: all steps or none.

A file of SQLite is first backed up beside itself.  A layout of a newer Orienteer is refused and not touched.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text

from orienteer.campaign.address import CampaignError
from orienteer.campaign.database import Database
from orienteer.campaign.schema import metadata
from orienteer.compute.atomic import atomic_path
from orienteer.compute.extras import how_to_install

VERSION_TABLE = "campaign_version"
_FOLDER = Path(__file__).parent / "migrations"
# Number of an advisory lock: arbitrary, but unlikely to be used by others on the same server.
_LOCK = 0x0121E47EE2


def newest_version() -> str:
    """The newest layout that this Orienteer knows."""
    return str(_scripts()[1].get_current_head())


def read_version(database: Database) -> str:
    """The layout of a database, read without waiting; empty if it is not a campaign yet."""
    return database.read_now(_version)


def migrate(database: Database) -> None:
    """Bring a database to the newest layout.

    If several processes open it at the same time, one migrates; the others wait and find nothing to do.
    """
    found = read_version(database)
    _check(database, found)
    if found != newest_version():
        database.write(lambda connection: _migrate(database, connection))
    elif missing := database.read_now(_missing):
        raise CampaignError(
            f"{database}: the database is marked as a campaign, but {missing}.",
            "It was changed by hand: restore an earlier copy, or give another file or database.",
        )


def _migrate(database: Database, connection: Connection) -> None:
    if not database.is_sqlite:  # SQLite lets only one write anyway
        connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": _LOCK})
    found = _version(connection)
    _check(database, found)
    if not found and set(inspect(connection).get_table_names()) & set(metadata.tables):
        raise CampaignError(f"{database}: this database is not a campaign.", "Give another file or database.")
    if found and database.is_sqlite:
        _back_up(Path(str(database.url.database)), found)
    config, scripts = _scripts()
    steps = scripts._upgrade_revs
    with EnvironmentContext(config, scripts, fn=lambda found, _: steps("head", found)) as environment:
        environment.configure(
            connection=connection,
            target_metadata=metadata,
            version_table=VERSION_TABLE,
            version_table_pk=False,
            transactional_ddl=False,  # the caller has begun the transaction
        )
        environment.run_migrations()


def _check(database: Database, found: str) -> None:
    known = {script.revision for script in _scripts()[1].walk_revisions()}
    if found and found not in known:
        raise CampaignError(
            f"{database}: a newer Orienteer has made this campaign (layout {found}; the newest known here is "
            f"{newest_version()}).",
            f"Upgrade Orienteer: {how_to_install()}.",
        )


def _version(connection: Connection) -> str:
    if not inspect(connection).has_table(VERSION_TABLE):
        return ""
    found = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()
    return str(found or "")


def _missing(connection: Connection) -> str:
    """The first missing table or column of a campaign, in words; empty if none is missing."""
    found = {name: columns for (_, name), columns in inspect(connection).get_multi_columns().items()}
    for name, table in metadata.tables.items():
        if name not in found:
            return f"it has no table '{name}'"
        there = {column["name"] for column in found[name]}
        for column in table.columns:
            if column.name not in there:
                return f"its table '{name}' has no column '{column.name}'"
    return ""


def _back_up(path: Path, version: str) -> None:
    """Copy the committed contents of the file to ``NAME.layout-VERSION.db`` beside it."""
    copy = path.with_name(f"{path.stem}.layout-{version}{path.suffix}")
    with (
        atomic_path(copy) as temporary,
        closing(sqlite3.connect(path)) as source,
        closing(sqlite3.connect(temporary)) as target,
    ):
        source.backup(target)


def _scripts() -> tuple[Config, ScriptDirectory]:
    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    return config, ScriptDirectory(str(_FOLDER), version_locations=[str(_FOLDER)])
