"""The address of a campaign: a file of SQLite, or a database of a PostgreSQL server."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from orienteer.compute.extras import how_to_install
from orienteer.errors import OrienteerError, SettingsError

NAME = "campaign.db"
_SERVERS = ("postgresql", "postgres", "postgresql+psycopg")
_EXAMPLES = "Give a file such as campaign.db, or a server: postgresql://user@host/name"


class CampaignError(OrienteerError):
    """A campaign cannot be opened, or does not contain what was asked for."""


class CampaignAway(CampaignError):  # noqa: N818 - perhaps only for a moment
    """A database does not answer, but may do so later."""


def parse_address(address: str | PathLike[str]) -> URL:
    """The database at a path or URL; a folder means the file ``campaign.db`` in it.

    ``postgresql://user@host/name`` is a server; the password may be left to ``~/.pgpass`` or PGPASSWORD.
    """
    text = fspath(address)
    if "://" not in text:
        path = Path(text)
        return URL.create("sqlite", database=str(path / NAME if path.is_dir() else path))
    try:
        url = make_url(text)
    except ArgumentError:
        raise SettingsError("this is no URL of a campaign.", _EXAMPLES) from None
    if url.drivername == "sqlite" and url.database and not url.database.startswith(":"):
        return url.set(query={})
    if url.drivername in _SERVERS:
        try:
            import psycopg  # noqa: F401 - checks that it is installed
        except ImportError:
            raise CampaignError(
                "campaigns on a PostgreSQL server need psycopg.",
                f"Install it: {how_to_install('postgres')}.",
            ) from None
        return url.set(drivername="postgresql+psycopg")
    raise SettingsError(f"{url.drivername} is no database that a campaign can be kept in.", _EXAMPLES)


def in_words(url: URL) -> str:
    """The address as it is shown to people, without a password."""
    if url.drivername == "sqlite":
        return str(url.database)
    return url.set(drivername="postgresql").render_as_string(hide_password=True)


def apart_from_password(address: str) -> tuple[str, str]:
    """The address of a campaign without its password, and the password ("" if it has none).

    >>> apart_from_password("postgresql://beam:secret@server/shift")
    ('postgresql://beam@server/shift', 'secret')
    """
    if "://" not in address:
        return address, ""
    try:
        url = make_url(address)
    except ArgumentError:
        return address, ""
    if url.password is None:
        return address, ""
    # URL.set(password=None) would keep the password, so a new URL is made.
    bare = URL.create(url.drivername, url.username, None, url.host, url.port, url.database, url.query)
    return bare.render_as_string(hide_password=False), str(url.password)
