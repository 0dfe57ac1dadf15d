"""The ``[hits]`` section: which shots have met a particle."""

from pydantic import Field

from orienteer.settings.section import Section


class HitSettings(Section):
    """Hit finding; by default everything is learned from the shots themselves."""

    find: bool = Field(default=True, description="Look for hits; false treats every shot as a hit.")
    false_hits: float = Field(
        default=0.002, gt=0, lt=0.5, description="Share of empty shots among the hits to aim at."
    )
    threshold: float = Field(
        default=0.0,
        ge=0,
        le=1e6,
        description="Score from which a shot is a hit, in standard deviations; 0: follows from false_hits.",
    )
    warm_up_shots: int = Field(
        default=512, ge=32, le=10**5, description="Shots from which the first background is learned."
    )
    memory_shots: int = Field(
        default=2000, ge=100, le=10**7, description="Empty shots that the running background remembers."
    )
    background: str = Field(
        default="", description="File of shots without particle to begin with; empty: learn on the way."
    )
    judge_kinds: bool = Field(
        default=True,
        description="Separate single particles from several and from junk; false leaves all hits unsure.",
    )
    keep_singles: float = Field(
        default=0.997,
        ge=0.5,
        lt=1,
        description="Share of single-particle hits that each of three tests keeps: profile, fringes, size.",
    )
    window_hits: int = Field(
        default=2000, ge=240, le=10**5, description="Recent hits from which the particle is learned."
    )
