"""Tags of single frames in a campaign: a copy of the tag file of each run, for searching and exporting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from sqlalchemy import Connection, delete, func, insert, select

from orienteer.campaign.schema import frame_tag, run
from orienteer.source.frame_tags import checked_tag


def put_frame_tags(connection: Connection, run_id: int, tags: Mapping[str, Iterable[int]]) -> bool:
    """Replace the frame tags of a run by these; returns whether anything has changed."""
    wanted = {(checked_tag(tag), number) for tag, ids in tags.items() for number in _signed(ids)}
    # Lock the row of the run: another process that sets its tags at the same time waits here.
    connection.execute(select(run.c.id).where(run.c.id == run_id).with_for_update())
    here = select(frame_tag.c.name, frame_tag.c.event_id).where(frame_tag.c.run_id == run_id)
    known = {(name, number) for name, number in connection.execute(here)}
    if wanted == known:
        return False
    connection.execute(delete(frame_tag).where(frame_tag.c.run_id == run_id))
    rows = [{"run_id": run_id, "name": name, "event_id": number} for name, number in sorted(wanted)]
    if rows:
        connection.execute(insert(frame_tag), rows)
    return True


def read_frame_tags(connection: Connection, run_id: int) -> dict[str, list[int]]:
    """By tag, the ids of the events of a run that have it, in order."""
    here = select(frame_tag.c.name, frame_tag.c.event_id).where(frame_tag.c.run_id == run_id)
    tags: dict[str, list[int]] = {}
    for name, number in connection.execute(here.order_by(frame_tag.c.name)):
        tags.setdefault(name, []).append(number % 2**64)
    return {name: sorted(ids) for name, ids in tags.items()}


def count_frame_tags(connection: Connection, run_id: int) -> dict[str, int]:
    """How many frames of a run have each tag."""
    counted = select(frame_tag.c.name, func.count()).where(frame_tag.c.run_id == run_id)
    rows = connection.execute(counted.group_by(frame_tag.c.name).order_by(frame_tag.c.name))
    return {name: int(n) for name, n in rows}


def _signed(ids: Iterable[int]) -> list[int]:
    """Unsigned 64-bit numbers reinterpreted as signed ones, which a database can store."""
    numbers: list[int] = np.array([int(one) for one in ids], np.uint64).view(np.int64).tolist()
    return numbers
