"""A histogram of one column of the shots, counted by the database."""

from __future__ import annotations

from typing import Any

import numpy as np
from sqlalchemy import Connection, Integer, case, cast, func, select

from orienteer.campaign.address import CampaignError
from orienteer.campaign.schema import segment, shot, shot_column
from orienteer.campaign.shots import NAMED

MOST_BINS = 1000


def histogram(connection: Connection, column: str, run_id: int | None, bins: int) -> dict[str, list[Any]]:
    """How many shots have which value: ``edges`` (bins + 1,) and ``counts`` (bins,), from least to most.

    run_id : None means all runs.
    """
    if column not in NAMED:
        raise CampaignError(
            f"there is no histogram of '{column[:40]}'.", f"There is one of: {', '.join(NAMED)}."
        )
    bins = min(max(int(bins), 1), MOST_BINS)
    kept = select(func.min(shot_column.c.least), func.max(shot_column.c.most)).where(
        shot_column.c.name == column
    )
    if run_id is not None:
        kept = kept.where(shot_column.c.run_id == run_id)
    least, most = connection.execute(kept).one()
    counts = np.zeros(bins, dtype=np.int64)
    if least is None:
        return {"edges": np.linspace(0.0, 1.0, bins + 1).tolist(), "counts": counts.tolist()}
    width = (most - least) / bins or 1.0
    value = shot.c[column]
    number = cast(func.floor((value - least) / width), Integer)
    inside = case((number >= bins, bins - 1), else_=number)  # the most belongs to the last bin
    query = select(inside.label("bin"), func.count()).where(value.is_not(None)).group_by("bin")
    if run_id is not None:
        joined = shot.join(segment, shot.c.segment_id == segment.c.id)
        query = query.select_from(joined).where(segment.c.run_id == run_id)
    for number_, count in connection.execute(query):
        counts[min(max(int(number_), 0), bins - 1)] += count
    return {"edges": (least + width * np.arange(bins + 1)).tolist(), "counts": counts.tolist()}
