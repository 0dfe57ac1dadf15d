"""Database: transactions that are whole or did not happen, and that wait for a server that is away.

SQLite is kept in WAL mode: readers never wait, and writers take turns.  A writing transaction takes its turn
at its beginning, because one that first reads and then writes could be refused in the middle.
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
# How long a call waits for a server that restarts, or for its turn to write.
PATIENCE_S = 60.0
_AGAIN_S = 0.2
_WRITES = "orienteer_writes"
# Two transactions that got in each other's way: one of them is to be tried again.
_CLASHES = ("40001", "40P01")


class Database:
    """A database and how work is done in it.

    patience_s : how long to wait for a database that does not answer, or for the turn to write.
    """

    def __init__(self, url: URL, patience_s: float = PATIENCE_S) -> None:
        self.url = url
        self.patience_s = patience_s
        self.is_sqlite = url.get_backend_name() == "sqlite"
        options: dict[str, Any] = {}
        # COPY goes past SQLAlchemy, and so do its errors.
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
        """Let go of all connections."""
        self._engine.dispose()

    def write(self, work: Callable[[Connection], T]) -> T:
        """Do the work in one transaction, again from its beginning where the database went away in between.

        work : gives the same outcome when it is done twice, because the answer to a commit may get lost.
        """
        return self._attempt(work, True, self.patience_s)

    def read(self, work: Callable[[Connection], T]) -> T:
        """Read in one transaction: everything is seen as it is at one instant."""
        return self._attempt(work, False, self.patience_s)

    def read_now(self, work: Callable[[Connection], T]) -> T:
        """The same, without patience: a database that is not there is said at once."""
        return self._attempt(work, False, 0.0)

    def _attempt(self, work: Callable[[Connection], T], writes: bool, patience_s: float) -> T:
        began = time.monotonic()
        while True:
            try:
                with self._transaction(writes) as connection:
                    return work(connection)
            except self._errors as error:
                # A database that is locked, starting or stopping is the right one, and worth waiting for.
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
        """Whether it may be another way in a moment."""
        told = _told(error)
        state = getattr(told, "sqlstate", None)
        if getattr(error, "connection_invalidated", False) or "database is locked" in str(told):
            return True
        if state is None:  # no answer of the server: there is no connection, or it was lost
            return isinstance(told, self._lost)
        return state in _CLASHES or str(state).startswith("57P")

    def _refusal(self, error: Exception, kind: type[CampaignError]) -> CampaignError:
        told = _told(error)
        first = (str(told).strip() or type(told).__name__).splitlines()[0]
        hint = "Check the path and its permissions." if self.is_sqlite else "Does the server run?"
        if "malformed" in first:
            hint = "The file is damaged: take a copy of it from before."
        elif "disk is full" in first or "No space left" in first:
            hint = "Make room, or put it on another disk."
        elif "password" in first:
            hint = "Check the user, and the password in ~/.pgpass or PGPASSWORD."
        if "database is locked" in first:
            hint = "Another process keeps writing; on a network file system use PostgreSQL."
        return kind(f"{self}: the database refused: {first.rstrip('.')}.", hint)


def insert_new(connection: Connection, table: Table, values: Mapping[str, Any]) -> Row[Any] | None:
    """Add a row unless one with the same key is there; its primary key, or None where it was there."""
    # A row comes back only where one was added; how many rows changed is not told by every driver.
    added = dialect_insert(connection)(table).values(**values).on_conflict_do_nothing()
    return connection.execute(added.returning(*table.primary_key.columns)).first()


def insert_once(connection: Connection, table: Table, values: Mapping[str, Any]) -> bool:
    """Add a row unless one with the same key is there; whether it was added."""
    return insert_new(connection, table, values) is not None


def dialect_insert(connection: Connection) -> Any:
    """The INSERT of this database, which knows what to do about rows that are there."""
    return sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert


def put(connection: Connection, table: Table, key: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Add a row, or change the one that has this key, which is the primary one."""
    statement = dialect_insert(connection)(table).values(**key, **values)
    connection.execute(statement.on_conflict_do_update(index_elements=list(key), set_=dict(values)))


def _prepare_sqlite(connection: Any, _: object) -> None:
    # Python's module begins transactions in its own way; here they are begun by _begin_sqlite alone.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")  # what was committed survives also a power cut
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES, True)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _told(error: Exception) -> BaseException:
    """What the driver itself said."""
    return (error.orig or error) if isinstance(error, DBAPIError) else error


def _is_changing(error: Exception) -> bool:
    parts = ("is starting up", "is shutting down", "in recovery mode", "database is locked")
    return any(part in str(_told(error)) for part in parts)
