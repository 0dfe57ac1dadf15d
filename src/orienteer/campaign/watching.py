"""Files that become runs by themselves: whatever a rule watches for, once it has stopped growing."""

from __future__ import annotations

import glob
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, select

from orienteer.campaign.names import name_of
from orienteer.campaign.rules import Rule
from orienteer.campaign.schema import rule, run

if TYPE_CHECKING:
    from orienteer.campaign.campaign import Campaign


def add_new_runs(campaign: Campaign) -> list[str]:
    """Add what the rules of a campaign watch for and is new and whole; the names of the new runs."""
    found: list[str] = []
    watched = campaign.database.read(_watching_rules)
    if not watched:
        return found
    known, names = campaign.database.read(_known)
    for made in watched:
        for path in sorted(glob.glob(made.watch)):
            if path in known or not _is_settled(Path(path), made.settle_s):
                continue
            name = _free_name(Path(path), names)
            campaign.add_run(name, data=path, sample=made.sample)
            known.add(path)
            names.add(name)
            found.append(name)
    return found


def _watching_rules(connection: Connection) -> list[Rule]:
    rows = connection.execute(select(rule.c.definition).where(rule.c.is_on == 1).order_by(rule.c.id))
    rules = [Rule(**json.loads(definition)) for definition in rows.scalars()]
    return [made for made in rules if made.watch]


def _known(connection: Connection) -> tuple[set[str], set[str]]:
    rows = connection.execute(select(run.c.data, run.c.name)).all()
    return {row.data for row in rows if row.data}, {row.name for row in rows}


def _is_settled(path: Path, settle_s: float) -> bool:
    """Whether nothing in a file, or in the files of a folder, has changed for so long."""
    try:
        times = [path.stat().st_mtime]
        if path.is_dir():
            times += [entry.stat().st_mtime for entry in os.scandir(path)]
    except OSError:  # it went away, or may not be read
        return False
    return time.time() - max(times) >= settle_s


def _free_name(path: Path, names: set[str]) -> str:
    """The name of the file; where another run has it, with that of its folder, or a number."""
    stem = name_of(path.stem if path.is_file() else path.name)
    for name in (stem, name_of(f"{path.parent.name} {stem}")):
        if name not in names:
            return name
    return next(name for i in range(2, len(names) + 3) if (name := f"{stem} ({i})") not in names)
