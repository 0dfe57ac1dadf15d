"""Files that automatically become runs: those that a rule watches for, once they have stopped growing."""

from __future__ import annotations

import glob
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, select

from orienteer.campaign.rules import Rule
from orienteer.campaign.schema import rule, run

if TYPE_CHECKING:
    from orienteer.campaign.campaign import Campaign


def add_new_runs(campaign: Campaign) -> list[str]:
    """Add new, complete files that the rules of a campaign watch for; returns the names of the new runs."""
    database = campaign.database
    watched = database.read(_watching_rules)
    if not watched:
        return []
    known = database.read(_known)
    found = []
    for made in watched:
        for path in sorted(glob.glob(made.watch)):
            if path in known or not _is_text(path) or not _is_settled(Path(path), made.settle_s):
                continue
            known.add(path)
            name, is_new = campaign.add_run_at(path, sample=made.sample, is_folder=False)
            found += [name] if is_new else []
    return found


def _watching_rules(connection: Connection) -> list[Rule]:
    rows = connection.execute(select(rule.c.definition).where(rule.c.is_on == 1).order_by(rule.c.id))
    rules = [Rule(**json.loads(definition)) for definition in rows.scalars()]
    return [made for made in rules if made.watch]


def _known(connection: Connection) -> set[str]:
    return set(connection.execute(select(run.c.data).where(run.c.data.is_not(None))).scalars())


def _is_text(path: str) -> bool:
    """Whether the path can be stored as text in a database; other files are ignored."""
    try:
        return bool(path.encode("utf-8"))
    except UnicodeEncodeError:
        return False


def _is_settled(path: Path, settle_s: float) -> bool:
    """Whether a file, or a folder with its files, has not changed for ``settle_s``."""
    try:
        times = [path.stat().st_mtime]
        if path.is_dir():
            times += [entry.stat().st_mtime for entry in os.scandir(path)]
    except OSError:  # it is gone, or may not be read
        return False
    return time.time() - max(times) >= settle_s
