"""A database is brought to the layout of this version when it is opened: all steps, or none.

A file of SQLite is copied first, beside itself.  What a newer Orienteer has made is refused and not touched.
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
# Any number that other users of the same server are not likely to lock.
_LOCK = 0x0121E47EE2


def newest_version() -> str:
    """The layout that this Orienteer knows."""
    return str(_scripts()[1].get_current_head())


def read_version(database: Database) -> str:
    """The layout of a database, asked for at once; empty where it is no campaign yet."""
    return database.read_now(_version)


def migrate(database: Database) -> None:
    """Bring a database to the newest layout.

    Several processes may open it at the same time: one migrates, the others wait and find nothing to do.
    """
    found = read_version(database)
    _check(database, found)
    if found != newest_version():
        database.write(lambda connection: _migrate(database, connection))
    elif missing := database.read_now(_missing):
        raise CampaignError(
            f"{database}: the layout is that of a campaign, but {missing}.",
            "Somebody has changed it: take a copy of it from before, or give another file or database.",
        )


def _migrate(database: Database, connection: Connection) -> None:
    if not database.is_sqlite:  # SQLite lets only one write anyway
        connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": _LOCK})
    found = _version(connection)
    _check(database, found)
    if not found and set(inspect(connection).get_table_names()) & set(metadata.tables):
        raise CampaignError(
            f"{database}: this database is something else than a campaign.", "Give another file or database."
        )
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
            transactional_ddl=False,  # the transaction is ours
        )
        environment.run_migrations()


def _check(database: Database, found: str) -> None:
    known = {script.revision for script in _scripts()[1].walk_revisions()}
    if found and found not in known:
        raise CampaignError(
            f"{database}: a newer Orienteer has made this campaign (layout {found}; known is "
            f"{newest_version()}).",
            f"Upgrade Orienteer: {how_to_install()}.",
        )


def _version(connection: Connection) -> str:
    if not inspect(connection).has_table(VERSION_TABLE):
        return ""
    found = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()
    return str(found or "")


def _missing(connection: Connection) -> str:
    """The first table or column of a campaign that is not there, in words; empty: all are."""
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
    """Copy the file as it is committed now to ``NAME.layout-VERSION.db`` beside it."""
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
