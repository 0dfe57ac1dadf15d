"""Histograms of the columns of shots, updated as shots are added, so that reading one counts no shots."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Connection, select, true

from orienteer.campaign.address import CampaignError
from orienteer.campaign.bins import MOST_BINS, Bins
from orienteer.campaign.schema import shot_column


def histogram(connection: Connection, column: str, run_id: int | None, bins: int) -> dict[str, list[Any]]:
    """The histogram of a column: ``edges`` (B + 1,) and ``counts`` (B,), B between bins / 2 and bins.

    Edges are multiples of a power of two, and integers if the values are; if no shot has a value, there are
    no bins.

    run_id : None means all runs.
    """
    found = kept_bins(connection, shot_column.c.name == column, _of(run_id)).get(column)
    if found is None:
        names = column_names(connection)
        if column not in names:
            raise CampaignError(
                f"there is no histogram of '{column[:40]}'.",
                f"There are histograms of: {', '.join(names) or 'nothing, before the first shot'}.",
            )
        return {"edges": [], "counts": []}
    joined = sum(found[1:], start=found[0]).at_most(min(max(int(bins), 1), MOST_BINS))
    return {"edges": joined.edges.tolist(), "counts": joined.counts.tolist()}


def column_names(connection: Connection, run_id: int | None = None) -> list[str]:
    """The columns in which any shot of a run has a value, sorted by name; None means all runs."""
    names = select(shot_column.c.name).where(_of(run_id)).distinct()
    return list(connection.execute(names.order_by(shot_column.c.name)).scalars())


def kept_bins(connection: Connection, *which: ColumnElement[bool]) -> dict[str, list[Bins]]:
    """The stored histograms of the selected runs and columns, by column."""
    kept = shot_column.c
    found: dict[str, list[Bins]] = {}
    for row in connection.execute(select(kept.name, kept.exponent, kept["first"], kept.counts).where(*which)):
        found.setdefault(row[0], []).append(Bins.from_bytes(row[1], row[2], row[3]))
    return found


def _of(run_id: int | None) -> ColumnElement[bool]:
    return true() if run_id is None else shot_column.c.run_id == run_id
