"""Runs and what is known of them: adding, describing, tagging, annotating and searching."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Row, delete, func, or_, select

from orienteer.campaign.address import CampaignError
from orienteer.campaign.database import insert_once, put
from orienteer.campaign.names import checked_name, checked_note, names_for, printable
from orienteer.campaign.schema import file, frame_tag, note, parameter, result, rule, run, sample, tag
from orienteer.source.frame_tags import checked_tag

SORTS = ("modified", "created", "name", "n_shots", "n_hits")
MOST_AT_ONCE = 1000
_COLUMNS = {"modified": run.c.modified_s, "created": run.c.created_s}
# The smallest difference that is safe for seconds since 1970 stored as a double.
_INSTANT_S = 1e-5


def moment(connection: Connection) -> float:
    """The time now in seconds since 1970, but at least later than every run and not before any rule.

    The clocks of machines that add to a campaign differ, but a rule must apply to all runs added after it.
    """
    last_run = connection.execute(select(func.max(run.c.created_s))).scalar() or 0.0
    last_rule = connection.execute(select(func.max(rule.c.since_s))).scalar() or 0.0
    return max(time.time(), last_run + _INSTANT_S, last_rule)


def add_run(connection: Connection, name: str, facts: Mapping[str, Any]) -> int:
    """Add a run, or change the given facts of an existing one; returns its number.

    facts : any of sample, kind, folder, data, is_open; None leaves a fact as it is.
    """
    now = time.time()
    given = {key: value for key, value in facts.items() if value is not None and key != "sample"}
    if sample_name := facts.get("sample"):
        given["sample_id"] = add_sample(connection, sample_name)
    values = {"name": checked_name(name), "created_s": moment(connection), "modified_s": now, **given}
    insert_once(connection, run, values)
    connection.execute(run.update().where(run.c.name == name).values(modified_s=now, **given))
    return find_run(connection, name)


def add_run_at(connection: Connection, path: str, place: str, facts: Mapping[str, Any]) -> tuple[str, bool]:
    """Add the run at a path under a name of its own, or change it; returns its name, and whether it is new.

    place : "folder" or "data", whichever the path is.
    """
    here = select(run.c.name).where(run.c[place] == path).order_by(run.c.id)
    known = connection.execute(here).scalar()
    name, is_new = known or "", False
    candidates = names_for(Path(path))
    now = time.time()
    while not name:
        candidate = next(candidates)
        values = {"name": candidate, place: path, "created_s": moment(connection), "modified_s": now}
        is_new = insert_once(connection, run, values)
        # Another process may have just added this same path under this name.
        if is_new or connection.execute(here.where(run.c.name == candidate)).scalar():
            name = candidate
    add_run(connection, name, {**facts, place: path})
    return name, is_new


def add_sample(connection: Connection, name: str, about: str = "") -> int:
    """Add a sample unless it exists, and set its description if one is given; returns its number."""
    insert_once(connection, sample, {"name": checked_name(name, "sample"), "about": about})
    if about:
        connection.execute(sample.update().where(sample.c.name == name).values(about=about))
    return int(connection.execute(select(sample.c.id).where(sample.c.name == name)).scalar_one())


def find_run(connection: Connection, name_or_id: str | int) -> int:
    """The number of a run given by name or number; raises CampaignError if there is none."""
    return int(_look_up(connection, run.c.id, name_or_id))


def count_shots(connection: Connection, name_or_id: str | int) -> int:
    """Number of shots of a run."""
    return int(_look_up(connection, run.c.n_shots, name_or_id))


def _look_up(connection: Connection, column: Any, name_or_id: str | int) -> Any:
    where = run.c.id == name_or_id if isinstance(name_or_id, int) else run.c.name == name_or_id
    found = connection.execute(select(column).where(where)).scalar()
    if found is None:
        raise CampaignError(
            f"the campaign has no run '{printable(str(name_or_id))[:60]}'.",
            "See them: orienteer campaign list",
        )
    return found


def touch(connection: Connection, run_id: int, **values: Any) -> None:
    """Change values of a run, and note the time of the change."""
    connection.execute(run.update().where(run.c.id == run_id).values(modified_s=time.time(), **values))


def tag_run(connection: Connection, run_id: int, add: Iterable[str], remove: Iterable[str]) -> list[str]:
    """Add tags to a run and remove others; returns the tags that it has then."""
    for text in add:
        insert_once(connection, tag, {"run_id": run_id, "name": checked_tag(text)})
    for text in remove:
        connection.execute(delete(tag).where(tag.c.run_id == run_id, tag.c.name == text.strip()))
    touch(connection, run_id)
    found = connection.execute(select(tag.c.name).where(tag.c.run_id == run_id).order_by(tag.c.name))
    return list(found.scalars())


def new_note(text: str, author: str) -> dict[str, Any]:
    """A note with a key of its own, so that writing it twice stores it once."""
    return {
        "key": uuid.uuid4().hex,
        "time_s": time.time(),
        "author": printable(author)[:200],
        "text": checked_note(text),
    }


def add_note(connection: Connection, run_id: int, written: Mapping[str, Any]) -> None:
    """Add a note to a run."""
    insert_once(connection, note, {"run_id": run_id, **written})
    touch(connection, run_id)


def put_facts(
    connection: Connection,
    run_id: int,
    parameters: Mapping[str, Any],
    results: Mapping[str, Any],
    files: Mapping[str, str],
) -> None:
    """Replace the values of these names; others stay."""
    for table, values in ((parameter, parameters), (result, results)):
        for name, value in values.items():
            put(connection, table, {"run_id": run_id, "name": name[:200]}, {"value": json.dumps(value)})
    for role, path in files.items():
        put(connection, file, {"run_id": run_id, "role": role[:200]}, {"path": path})
    touch(connection, run_id)


def list_runs(
    connection: Connection,
    search: str = "",
    tag_name: str = "",
    sample_name: str = "",
    sort: str = "-modified",
    offset: int = 0,
    limit: int = 50,
) -> tuple[int, list[dict[str, Any]]]:
    """How many runs match, and ``limit`` of them from ``offset`` on.

    search : a part of the name, the sample, a tag (also of its frames) or a note; case does not matter.
    sort : one of SORTS; with a minus before it, the largest comes first.
    """
    where = []
    if search:
        where.append(_matches(search[:200]))
    if tag_name:
        where.append(run.c.id.in_(select(tag.c.run_id).where(tag.c.name == tag_name)))
    if sample_name:
        where.append(sample.c.name == sample_name)
    joined = run.outerjoin(sample, run.c.sample_id == sample.c.id)
    total = connection.execute(select(func.count()).select_from(joined).where(*where)).scalar_one()
    order = sort.removeprefix("-")
    if order not in SORTS:
        raise CampaignError(f"runs are not sorted by '{order[:40]}'.", f"Sort by {', '.join(SORTS)}.")
    column = _COLUMNS[order] if order in _COLUMNS else run.c[order]
    rows = connection.execute(
        select(run, sample.c.name.label("sample"))
        .select_from(joined)
        .where(*where)
        .order_by(column.desc() if sort.startswith("-") else column, run.c.id)
        .offset(max(0, offset))
        .limit(min(max(0, limit), MOST_AT_ONCE))
    ).all()
    tags = _tags_of(connection, [row.id for row in rows])
    return int(total), [{**_as_facts(row), "tags": tags.get(row.id, [])} for row in rows]


def describe_run(connection: Connection, run_id: int) -> dict[str, Any]:
    """Everything that is known of a run, except its shots and jobs."""
    joined = run.outerjoin(sample, run.c.sample_id == sample.c.id)
    row = connection.execute(
        select(run, sample.c.name.label("sample")).select_from(joined).where(run.c.id == run_id)
    ).one()
    notes = connection.execute(select(note).where(note.c.run_id == run_id).order_by(note.c.id))
    return {
        **_as_facts(row),
        "tags": _tags_of(connection, [run_id]).get(run_id, []),
        "parameters": _values(connection, parameter, run_id),
        "results": _values(connection, result, run_id),
        "files": {
            each.role: each.path
            for each in connection.execute(select(file).where(file.c.run_id == run_id).order_by(file.c.role))
        },
        "notes": [{"time": at(each.time_s), "author": each.author, "text": each.text} for each in notes],
    }


def list_samples(connection: Connection) -> list[dict[str, Any]]:
    """Samples with the sums over their runs."""
    sums = [func.count(run.c.id), func.sum(run.c.n_shots), func.sum(run.c.n_hits)]
    rows = connection.execute(
        select(sample.c.name, sample.c.about, *sums)
        .select_from(sample.outerjoin(run, run.c.sample_id == sample.c.id))
        .group_by(sample.c.id, sample.c.name, sample.c.about)
        .order_by(sample.c.name)
    )
    names = ("name", "about", "n_runs", "n_shots", "n_hits")
    return [
        dict(zip(names, (name, about, n, int(shots or 0), int(hits or 0)), strict=True))
        for name, about, n, shots, hits in rows
    ]


def at(time_s: float | None) -> str | None:
    """A time as text, in UTC."""
    return None if time_s is None else datetime.fromtimestamp(time_s, UTC).isoformat(timespec="seconds")


def _matches(search: str) -> Any:
    # The database converts both sides to lower case, as it may not know all the letters that Python does.
    escaped = search.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    pattern = func.lower(f"%{escaped}%")
    tags = select(tag.c.run_id).where(func.lower(tag.c.name).like(pattern, escape="\\"))
    of_frames = select(frame_tag.c.run_id).where(func.lower(frame_tag.c.name).like(pattern, escape="\\"))
    notes = select(note.c.run_id).where(func.lower(note.c.text).like(pattern, escape="\\"))
    return or_(
        func.lower(run.c.name).like(pattern, escape="\\"),
        func.lower(sample.c.name).like(pattern, escape="\\"),
        run.c.id.in_(tags),
        run.c.id.in_(of_frames),
        run.c.id.in_(notes),
    )


def _tags_of(connection: Connection, ids: list[int]) -> dict[int, list[str]]:
    tags: dict[int, list[str]] = {}
    query = select(tag.c.run_id, tag.c.name).where(tag.c.run_id.in_(ids)).order_by(tag.c.name)
    for run_id, name in connection.execute(query):
        tags.setdefault(run_id, []).append(name)
    return tags


def _values(connection: Connection, table: Any, run_id: int) -> dict[str, Any]:
    rows = connection.execute(select(table).where(table.c.run_id == run_id).order_by(table.c.name))
    return {row.name: json.loads(row.value) for row in rows}


def _as_facts(row: Row[Any]) -> dict[str, Any]:
    return {
        "id": row.id,
        "name": row.name,
        "kind": row.kind,
        "sample": row.sample or "",
        "folder": row.folder,
        "data": row.data,
        "is_open": bool(row.is_open),
        "n_shots": row.n_shots,
        "n_hits": row.n_hits,
        "created": at(row.created_s),
        "modified": at(row.modified_s),
    }
