"""Shots of a growing run into the campaign, exactly once, whoever is killed in between.

The campaign itself says how many shots of the run it has; the next ones are read from there on.  A batch is
named by the number of its first shot, so that of two feeders that read the same one only one adds it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from orienteer.campaign.address import CampaignError

if TYPE_CHECKING:
    from orienteer.campaign.campaign import Campaign

Reader = Callable[[int, int], Mapping[str, NDArray[Any]]]
AT_MOST = 20_000


def feed(campaign: Campaign, run: str | int, read: Reader, at_most: int = AT_MOST) -> int:
    """Add all shots that the campaign does not have yet; how many were added.

    read : gives the columns (N,) of at most so many shots from this number on, always in the same order:
        ``read(first, at_most)``.  No shot means that there are no more for now.
    """
    added = 0
    while True:
        first = campaign.n_shots(run)
        columns = read(first, at_most)
        n = len(columns["event_id"]) if columns else 0
        if n == 0:
            return added
        if campaign.add_shots(run, columns, segment=f"from {first}"):
            added += n
        elif campaign.n_shots(run) == first:
            raise CampaignError(
                f"the shots from {first} on were added before, but are not counted.",
                "Somebody has changed the database: add the run again under another name.",
            )
