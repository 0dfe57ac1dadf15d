"""The ``[online]`` section: how a reconstruction grows while its data arrive."""

from typing import Literal

from pydantic import Field

from orienteer.settings.section import Section


class OnlineSettings(Section):
    """A map that begins with the first hits and grows with them; the engine is that of ``[emc]``."""

    first_hits: int = Field(
        default=300, ge=20, le=10**7, description="Number of hits from which the first model is made."
    )
    round_hits: int = Field(
        default=0,
        ge=0,
        le=10**7,
        description="Number of hits in a round, new ones before old ones; 0: 4000, on a GPU 20 000.",
    )
    memory_GiB: float = Field(
        default=0.0,
        ge=0,
        le=1e5,
        description="Memory for hits; if more come, a fair sample is kept; 0: a quarter of what is free.",
    )
    forgetting: float = Field(
        default=0.2,
        gt=0,
        le=1,
        description="Least share of the newest round in the sum of all rounds; 1: only the newest counts.",
    )
    finish: Literal["continue", "both", "no"] = Field(
        default="continue",
        description="At the end, all stages with all hits: from the map; also from a random start; or not.",
    )
