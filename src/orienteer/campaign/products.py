"""Add the product of a step to the campaign: its table of shots, or the results of its run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from orienteer.campaign.facts import read_facts
from orienteer.campaign.feeding import feed
from orienteer.compute.reading import reading

if TYPE_CHECKING:
    from orienteer.campaign.campaign import Campaign

TABLE = ".npz"


def take_in(campaign: Campaign, run: str | int, product: Path) -> None:
    """Add the shots of a table, or the facts about a run directory; doing it twice changes nothing.

    Shots that the campaign has already, from a live run or an earlier call, stay as they are.
    """
    if product.suffix != TABLE:
        campaign.put_facts(run, **read_facts(product))
        return
    with reading(product, "table of shots"), np.load(product, allow_pickle=False) as file:
        columns: dict[str, Any] = {name: file[name] for name in file.files}
    if len(columns.get("event_id", ())):
        feed(
            campaign,
            run,
            lambda first, most: {name: column[first : first + most] for name, column in columns.items()},
        )
