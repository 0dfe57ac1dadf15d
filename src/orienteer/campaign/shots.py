"""Shots of a run: added a segment at a time, counted once, read back as columns.

A segment is one transaction: its name, its rows, and the update of the sums of the run.  A process that is
killed meanwhile has added nothing, and adding the same segment again adds nothing either.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, func, select

from orienteer.campaign.address import CampaignError
from orienteer.campaign.bins import Bins
from orienteer.campaign.database import dialect_insert, insert_new
from orienteer.campaign.histogram import kept_bins
from orienteer.campaign.schema import run, segment, shot, shot_column
from orienteer.compute.words import counted

Columns = Mapping[str, NDArray[Any]]
_INTEGERS = ("is_hit", "kind", "fate")
NAMED = tuple(
    column.name for column in shot.columns if column.name not in ("segment_id", "number", "event_id", "more")
)


def add_shots(connection: Connection, run_id: int, columns: Columns, name: str) -> bool:
    """Add the shots of a segment; returns False and adds nothing if a segment of this name was added before.

    columns : (N,) each, ``event_id`` among them; columns with an array per shot are left out.
    """
    n = _length(columns)
    added = insert_new(connection, segment, {"run_id": run_id, "name": name, "n_shots": n})
    if added is None:
        return False
    table = {"segment_id": [added.id] * n, "number": list(range(n)), **_as_lists(columns)}
    if connection.dialect.name == "sqlite":
        _insert_rows(connection, table)
    else:
        _copy_rows(connection, table)
    hits = sum(1 for is_hit in table.get("is_hit", ()) if is_hit)  # unknown counts as no hit
    sums = {"n_shots": run.c.n_shots + n, "n_hits": run.c.n_hits + hits, "modified_s": time.time()}
    # Update this row first: it serialises processes that add shots to the same run, before the sums below.
    connection.execute(run.update().where(run.c.id == run_id).values(**sums))
    _add_to_sums(connection, run_id, columns)
    return True


def read_shots(connection: Connection, run_id: int, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Columns (N,) of all shots of a run in the order of arrival; NaN where a value is not known."""
    unknown = set(names) - {"event_id", *NAMED} - set(_other_names(connection, run_id))
    if unknown:
        raise CampaignError(
            f"no shot of this run has a column '{sorted(unknown)[0]}'.",
            "See the columns that it has: orienteer campaign show",
        )
    stored = [name for name in names if name == "event_id" or name in NAMED]
    others = [name for name in names if name not in stored]
    wanted = [shot.c[name] for name in (*stored, *(("more",) if others else ()))]
    joined = shot.join(segment, shot.c.segment_id == segment.c.id)
    query = select(*wanted).select_from(joined).where(segment.c.run_id == run_id)
    rows = connection.execute(query.order_by(shot.c.segment_id, shot.c.number)).all()
    parts: list[Any] = list(zip(*rows, strict=True)) or [()] * len(wanted)
    found = {name: _as_array(name, parts[i]) for i, name in enumerate(stored)}
    if others:
        more = [json.loads(text) if text else {} for text in parts[-1]]
        found |= {name: _as_array(name, [each.get(name) for each in more]) for name in others}
    return {name: found[name] for name in names}


def column_sums(connection: Connection, run_id: int) -> dict[str, dict[str, float]]:
    """Number, least, most and mean of each column of the shots of a run, from sums kept up to date."""
    rows = connection.execute(
        select(shot_column).where(shot_column.c.run_id == run_id).order_by(shot_column.c.name)
    )
    return {
        row.name: {"n": row.n, "least": row.least, "most": row.most, "mean": row.total / row.n}
        for row in rows
    }


def _other_names(connection: Connection, run_id: int) -> list[str]:
    return [name for name in column_sums(connection, run_id) if name not in NAMED]


def _length(columns: Columns) -> int:
    if "event_id" not in columns:
        raise CampaignError("shots without event_id cannot be identified.", "Add the column event_id.")
    lengths = {name: len(column) for name, column in columns.items()}
    n = lengths["event_id"]
    for name, length in lengths.items():
        if length != n:
            raise CampaignError(
                f"there are {counted(n, 'shot')}, but the column '{name}' has {counted(length, 'value')}.",
                "Give every column one value for each shot.",
            )
    return n


def _as_lists(columns: Columns) -> dict[str, list[Any]]:
    """Values as the database stores them: NaN becomes NULL, and columns not in the schema become JSON."""
    event_id = np.ascontiguousarray(columns["event_id"], dtype=np.uint64).view(np.int64)
    table: dict[str, list[Any]] = {"event_id": event_id.tolist()}
    others: dict[str, list[Any]] = {}
    for name, column in _scalars(columns).items():
        (table if name in NAMED else others)[name] = _values(name, column)
    if others:
        names = list(others)
        table["more"] = [
            json.dumps({name: value for name, value in zip(names, row, strict=True) if value is not None})
            for row in zip(*others.values(), strict=True)
        ]
    return table


def _scalars(columns: Columns) -> dict[str, NDArray[Any]]:
    return {
        name: np.asarray(column)
        for name, column in columns.items()
        if name != "event_id" and np.ndim(column) == 1 and np.asarray(column).dtype.kind in "biuf"
    }


def _values(name: str, column: NDArray[Any]) -> list[Any]:
    if name not in _INTEGERS or column.dtype.kind == "f":
        column = column.astype(np.float64)
    is_number = np.isfinite(column)
    values = column.astype(np.int64) if name in _INTEGERS and is_number.all() else column
    if is_number.all():
        return list(values.tolist())
    kind = int if name in _INTEGERS else float
    pairs = zip(column.tolist(), is_number.tolist(), strict=True)
    return [kind(value) if known else None for value, known in pairs]


def _as_array(name: str, values: Sequence[Any]) -> NDArray[Any]:
    if name == "event_id":
        return np.array(values, dtype=np.int64).view(np.uint64)
    if name in _INTEGERS and None not in values:
        return np.array(values, dtype=bool if name == "is_hit" else np.uint8)
    return np.array(values, dtype=np.float64)  # None becomes NaN


def _insert_rows(connection: Connection, table: Mapping[str, list[Any]]) -> None:
    # No injection: the names are those of the schema, and values are bound.
    names = ", ".join(f'"{name}"' for name in table)
    places = ", ".join("?" * len(table))
    rows = list(zip(*table.values(), strict=True))
    if rows:
        connection.exec_driver_sql(f"INSERT INTO shot ({names}) VALUES ({places})", rows)


def _copy_rows(connection: Connection, table: Mapping[str, list[Any]]) -> None:
    """Copy all rows as one block of text, because every single write waits for the server."""
    from psycopg import sql

    names = sql.SQL(", ").join(sql.Identifier(name) for name in table)
    lines = map("\t".join, zip(*map(_for_copy, table.values()), strict=True))
    block = "".join(f"{line}\n" for line in lines).encode()
    driver: Any = connection.connection.driver_connection
    with driver.cursor() as cursor, cursor.copy(sql.SQL("COPY shot ({}) FROM STDIN").format(names)) as copy:
        copy.write(block)


def _for_copy(values: list[Any]) -> list[str]:
    """Numbers and JSON as COPY reads them: \\N is NULL, and two backslashes are one."""
    return ["\\N" if value is None else str(value).replace("\\", "\\\\") for value in values]


def _add_to_sums(connection: Connection, run_id: int, columns: Columns) -> None:
    # No other process changes these sums meanwhile: this transaction holds the row of the run until its end.
    known = kept_bins(connection, shot_column.c.run_id == run_id)
    rows = []
    for name, column in _scalars(columns).items():
        given = column[np.isfinite(column)]
        if not len(given):
            continue
        values = given.astype(np.float64)
        sums = {"least": float(values.min()), "most": float(values.max()), "total": float(values.sum())}
        bins: Bins = sum(known.get(name[:200], []), start=Bins.of(given))
        kept = {"exponent": bins.exponent, "first": bins.first, "counts": bins.as_bytes()}
        rows.append({"run_id": run_id, "name": name[:200], "n": len(values), **sums, **kept})
    if not rows:
        return
    # One statement for all columns: every round trip to a server takes time.
    added = dialect_insert(connection)(shot_column).values(rows)
    before, new = shot_column.c, added.excluded
    smaller, larger = ("min", "max") if connection.dialect.name == "sqlite" else ("least", "greatest")
    changed = {
        "n": before.n + new.n,
        "least": getattr(func, smaller)(before.least, new.least),
        "most": getattr(func, larger)(before.most, new.most),
        "total": before.total + new.total,
        "exponent": new.exponent,
        "first": new["first"],
        "counts": new.counts,
    }
    connection.execute(added.on_conflict_do_update(index_elements=["run_id", "name"], set_=changed))
