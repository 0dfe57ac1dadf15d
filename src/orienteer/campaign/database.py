"""Database: atomic transactions that wait for a server that is temporarily away.

SQLite is kept in WAL mode: readers never wait, and writers take turns.  A writing transaction takes the write
lock at its beginning, because one that first reads and then writes could be refused in the middle.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Row, Table, create_engine, event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError

from orienteer.campaign.address import CampaignAway, CampaignError, in_words

T = TypeVar("T")
# Seconds that a call waits for a server that restarts, or for its turn to write.
PATIENCE_S = 60.0
_AGAIN_S = 0.2
_WRITES = "orienteer_writes"
# SQLSTATE of two transactions that conflict: one of them has to be repeated.
_CLASHES = ("40001", "40P01")


class Database:
    """A database, and transactions on it.

    patience_s : seconds to wait for a database that does not answer, or for the turn to write.
    """

    def __init__(self, url: URL, patience_s: float = PATIENCE_S) -> None:
        self.url = url
        self.patience_s = patience_s
        self.is_sqlite = url.get_backend_name() == "sqlite"
        options: dict[str, Any] = {}
        # COPY bypasses SQLAlchemy, so its errors are those of the driver.
        self._errors: tuple[type[Exception], ...] = (DBAPIError,)
        self._lost: tuple[type[Exception], ...] = ()
        if self.is_sqlite:
            options["connect_args"] = {"timeout": patience_s}
        else:
            from psycopg import Error, OperationalError

            self._errors, self._lost = (DBAPIError, Error), (OperationalError,)
            options["connect_args"] = {"connect_timeout": 10}
        self._engine = create_engine(url, **options)
        if self.is_sqlite:
            event.listen(self._engine, "connect", _prepare_sqlite)
            event.listen(self._engine, "begin", _begin_sqlite)

    def __str__(self) -> str:
        return in_words(self.url)

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def write(self, work: Callable[[Connection], T]) -> T:
        """Do the work in one transaction; repeat it from the beginning if the database goes away meanwhile.

        work : must give the same outcome when done twice, because the answer to a commit may get lost.
        """
        return self._attempt(work, True, self.patience_s)

    def read(self, work: Callable[[Connection], T]) -> T:
        """Read in one transaction, which sees the database as it is at one instant."""
        return self._attempt(work, False, self.patience_s)

    def read_now(self, work: Callable[[Connection], T]) -> T:
        """Read without patience: if the database is not there, an error is raised at once."""
        return self._attempt(work, False, 0.0)

    def _attempt(self, work: Callable[[Connection], T], writes: bool, patience_s: float) -> T:
        began = time.monotonic()
        while True:
            try:
                with self._transaction(writes) as connection:
                    return work(connection)
            except self._errors as error:
                # A locked, starting or stopping database does exist, and is worth waiting for.
                enough_s = self.patience_s if _is_changing(error) else patience_s
                if not self._passes(error):
                    raise self._refusal(error, CampaignError) from error
                if time.monotonic() - began > enough_s:
                    raise self._refusal(error, CampaignAway) from error
            time.sleep(_AGAIN_S)

    @contextmanager
    def _transaction(self, writes: bool) -> Iterator[Connection]:
        options = {_WRITES: writes}
        with self._engine.connect().execution_options(**options) as connection, connection.begin():
            if not (writes or self.is_sqlite):
                connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield connection

    def _passes(self, error: Exception) -> bool:
        """Whether the cause of the error may pass by itself."""
        told = _told(error)
        state = getattr(told, "sqlstate", None)
        if getattr(error, "connection_invalidated", False) or "database is locked" in str(told):
            return True
        if state is None:  # not an answer of the server: there is no connection, or it was lost
            return isinstance(told, self._lost)
        return state in _CLASHES or str(state).startswith("57P")

    def _refusal(self, error: Exception, kind: type[CampaignError]) -> CampaignError:
        told = _told(error)
        first = (str(told).strip() or type(told).__name__).splitlines()[0]
        hint = "Check the path and its permissions." if self.is_sqlite else "Is the server running?"
        if "malformed" in first:
            hint = "The file is damaged: restore it from an earlier copy."
        elif "disk is full" in first or "No space left" in first:
            hint = "Make room on the disk, or move the database to another one."
        elif "password" in first:
            hint = "Check the user, and the password in ~/.pgpass or PGPASSWORD."
        if "database is locked" in first:
            hint = "Another process keeps writing; on a network file system use PostgreSQL."
        return kind(f"{self}: the database refused: {first.rstrip('.')}.", hint)


def insert_new(connection: Connection, table: Table, values: Mapping[str, Any]) -> Row[Any] | None:
    """Add a row unless one with the same key exists; returns its primary key, or None if it existed."""
    # RETURNING gives a row only if one was added; not every driver reports how many rows have changed.
    added = dialect_insert(connection)(table).values(**values).on_conflict_do_nothing()
    return connection.execute(added.returning(*table.primary_key.columns)).first()


def insert_once(connection: Connection, table: Table, values: Mapping[str, Any]) -> bool:
    """Add a row unless one with the same key exists; returns whether it was added."""
    return insert_new(connection, table, values) is not None


def dialect_insert(connection: Connection) -> Any:
    """The INSERT of this database, which has ON CONFLICT clauses for existing rows."""
    return sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert


def put(connection: Connection, table: Table, key: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Add a row, or change the one with this primary key."""
    statement = dialect_insert(connection)(table).values(**key, **values)
    connection.execute(statement.on_conflict_do_update(index_elements=list(key), set_=dict(values)))


def _prepare_sqlite(connection: Any, _: object) -> None:
    # Keep Python's sqlite3 from beginning transactions itself; only _begin_sqlite does.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")  # commits survive even a power cut
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES, True)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _told(error: Exception) -> BaseException:
    """The error of the driver itself."""
    return (error.orig or error) if isinstance(error, DBAPIError) else error


def _is_changing(error: Exception) -> bool:
    parts = ("is starting up", "is shutting down", "in recovery mode", "database is locked")
    return any(part in str(_told(error)) for part in parts)
