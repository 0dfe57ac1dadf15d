"""Arguments that the campaign commands share: the campaign and one of its runs."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from orienteer.campaign.campaign import Campaign

Address = Annotated[
    str,
    typer.Argument(
        metavar="CAMPAIGN",
        help="A file, a folder with campaign.db, or postgresql://user@host/name.",
        show_default=False,
    ),
]
RunName = Annotated[str, typer.Argument(metavar="RUN", help="Name of a run.", show_default=False)]


def open_campaign(address: str, create: bool = False) -> "Campaign":
    """The campaign at an address."""
    from orienteer.campaign.campaign import Campaign

    return Campaign.open(address, create)
