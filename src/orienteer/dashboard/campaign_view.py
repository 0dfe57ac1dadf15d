"""Routes about the campaign: its sums, jobs and rules, and histograms of its shots."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from orienteer.dashboard.answers import PlainAnswer
from orienteer.dashboard.state import State


def campaign_routes(state: State) -> APIRouter:
    """The routes below ``/api/campaign``."""
    routes = APIRouter(prefix="/api/campaign")

    @routes.get("")
    def campaign() -> Response:
        return PlainAnswer(state.book.ask(lambda campaign: campaign.overview()))

    @routes.get("/shots")
    def shots(
        column: Annotated[str, Query(max_length=64)],
        run: Annotated[str, Query(max_length=200)] = "",
        bins: Annotated[int, Query(ge=1, le=1000)] = 50,
    ) -> Response:
        return PlainAnswer(state.book.ask(lambda campaign: campaign.histogram(column, run or None, bins)))

    return routes
