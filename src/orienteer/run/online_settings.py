"""The ``[online]`` section: how a reconstruction grows while its data arrive."""

from typing import Literal

from pydantic import Field

from orienteer.settings.section import Section


class OnlineSettings(Section):
    """A map that begins with the first hits and grows with them; the engine is that of ``[emc]``."""

    first_hits: int = Field(
        default=300, ge=20, le=10**7, description="Hits with which the first model is begun."
    )
    round_hits: int = Field(
        default=0,
        ge=0,
        le=10**7,
        description="Hits of a round, new ones first, then old ones; 0: 4000, on a GPU 20 000.",
    )
    memory_GiB: float = Field(
        default=0.0,
        ge=0,
        le=1e5,
        description="Memory of the hits that are kept, a fair sample of more; 0: a quarter of what is free.",
    )
    forgetting: float = Field(
        default=0.2,
        gt=0,
        le=1,
        description="Least share of a round in what all rounds have merged; 1: only the last counts.",
    )
    finish: Literal["continue", "both", "no"] = Field(
        default="continue",
        description="All stages with all hits at the end: from the map; also from a random start; or not.",
    )
