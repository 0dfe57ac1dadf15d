"""Shots and runs of a campaign as files that other programs read."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orienteer.compute.atomic import atomic_path
from orienteer.compute.plain_json import write_json
from orienteer.errors import FileError
from orienteer.hits.shot_table import check_table_path, write_shot_table

if TYPE_CHECKING:
    from orienteer.campaign.campaign import Campaign

ENDINGS = (".csv", ".h5", ".npz", ".json")
_PAGE = 1000


def export_shots(campaign: Campaign, run: str | int, out: Path) -> int:
    """Write one row per shot of a run, with every column that any of its shots has; returns how many rows.

    out : .csv, .h5 or .npz; the latter two have one data set per column.
    """
    check_table_path(out)
    names = ["event_id", *campaign.run(run)["columns"]]
    columns = campaign.shots(run, names)
    write_shot_table(out, columns)
    return len(columns["event_id"])


def export_runs(campaign: Campaign, out: Path) -> int:
    """Write all runs with everything known of them (.json) or as a table (.csv); returns how many."""
    _check(out, (".json", ".csv"))
    runs: list[dict[str, Any]] = []
    while True:
        total, page = campaign.runs(sort="name", offset=len(runs), limit=_PAGE)
        runs += page
        if len(runs) >= total or not page:
            break
    if out.suffix == ".json":
        write_json(out, {"runs": [campaign.run(run["id"]) for run in runs]})
        return len(runs)
    rows = [{**run, "tags": " ".join(run["tags"])} for run in runs]
    with atomic_path(out) as temporary:
        _write_rows(temporary, list(rows[0]) if rows else ["name"], rows)
    return len(runs)


def _check(out: Path, endings: Sequence[str]) -> None:
    if out.suffix not in endings:
        raise FileError(out, f"'{out.suffix}' is no format for this.", f"Write {', '.join(endings)}.")


def _write_rows(path: Path, names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows({name: _not_a_formula(value) for name, value in row.items()} for row in rows)


def _not_a_formula(value: Any) -> Any:
    """Text, prefixed with ' if a spreadsheet would otherwise compute it as a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t\r" and value else value
