"""The ``[live]`` section: how a stream is received."""

from typing import ClassVar, Literal

from pydantic import Field

from orienteer.settings.section import Section


class LiveSettings(Section):
    """Receiving a stream; all of these settings may change when a live run is started again."""

    may_change: ClassVar[frozenset[str]] = frozenset(
        ("commit_every_s", "when_late", "late_after_s", "map", "map_of")
    )

    commit_every_s: float = Field(
        default=1.0, ge=0.05, le=60, description="Time in seconds between segments of the journal."
    )
    when_late: Literal["wait", "drop"] = Field(
        default="wait",
        description="What to do with late events: let them wait their turn, or drop and count them.",
    )
    late_after_s: float = Field(
        default=10.0,
        gt=0,
        le=1e6,
        description="Age in seconds, by its time_s, at which an event is late.",
    )
    map: bool = Field(default=True, description="Reconstruct a map that grows while hits arrive.")
    map_of: Literal["single", "hits"] = Field(
        default="single", description="Which hits the map is made from: single particles, or all hits."
    )
