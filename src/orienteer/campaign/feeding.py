"""Add the shots of a growing run to the campaign, each exactly once, even if processes are killed.

The campaign knows how many shots of the run it has; reading continues from there.  A batch is named by the
number of its first shot, so that if two feeders read the same batch, only one adds it.
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
    """Add all shots that the campaign does not have yet; returns how many were added.

    read : ``read(first, at_most)`` gives the columns (N,) of at most ``at_most`` shots from number ``first``
        on, always in the same order.  No shot means that there are no more for now.
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
                "The database was changed by hand: add the run again under another name.",
            )
