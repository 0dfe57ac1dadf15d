"""The ``[phase]`` section: how an intensity becomes a density; the defaults need no changes."""

from collections.abc import Callable
from typing import Self, TypeVar

from pydantic import Field, field_validator, model_validator

from orienteer.errors import OrienteerError
from orienteer.orientation.point_group import as_point_group
from orienteer.phase.schedule import parse_schedule
from orienteer.settings.section import Section

T = TypeVar("T")
DEFAULT_SCHEDULE = "400*dm 100*raar(0.87) 100*er"


class PhaseSettings(Section):
    """Phase retrieval from many random starts, with a support of a given volume.

    >>> PhaseSettings(starts=50, schedule="500*raar(0.87) 100*er")
    PhaseSettings(starts=50, schedule='500*raar(0.87) 100*er')
    """

    starts: int = Field(default=20, ge=1, le=10000, description="Random starts that are phased and compared.")
    schedule: str = Field(
        default=DEFAULT_SCHEDULE,
        description="Iterations in order: er, hio(b), raar(b), dm(b), as in '400*dm 100*raar(0.87) 100*er'.",
    )
    symmetry: str = Field(
        default="C1",
        description="Symmetry of the particle: C1, Cn, Dn, T, O or I; a run's own where none is given.",
    )
    diameter_A: float = Field(
        default=0.0,
        ge=0,
        le=1e6,
        description="Largest extent of the particle; 0: that of the run, or else of the autocorrelation.",
    )
    support_volume_A3: float = Field(
        default=0.0,
        ge=0,
        le=1e18,
        description="Volume that the density may fill; 0: the one that best predicts held-out voxels.",
    )
    support_every: int = Field(
        default=20, ge=1, le=100000, description="Iterations between two updates of the support."
    )
    positivity: bool = Field(default=True, description="Whether the density must not be negative.")
    background: bool = Field(
        default=True, description="Whether a flat background of the intensity is fitted and subtracted."
    )
    resolution_A: float = Field(
        default=0.0,
        ge=0,
        le=1e6,
        description="Full-period resolution to phase to; 0: the edge of the data.",
    )
    held_out: float = Field(
        default=0.06,
        ge=0.005,
        le=0.2,
        description="Share of the measured voxels held out: half choose among densities, half judge.",
    )
    electrons: float = Field(
        default=0.0,
        ge=0,
        le=1e15,
        description="Electrons of the particle, for the scale of the density; 0: not known.",
    )
    mass_kDa: float = Field(
        default=0.0,
        ge=0,
        le=1e12,
        description="Mass of a particle of protein, for the scale of the density; 0: not known.",
    )

    @model_validator(mode="after")
    def _scale_is_told_once(self) -> Self:
        if self.electrons and self.mass_kDa:
            raise ValueError("electrons and mass_kDa both set the scale of the density; give one of them")
        return self

    @field_validator("schedule")
    @classmethod
    def _schedule_can_be_read(cls, text: str) -> str:
        _as_value_error(parse_schedule, text)
        return text

    @field_validator("symmetry")
    @classmethod
    def _symmetry_is_known(cls, name: str) -> str:
        return str(_as_value_error(as_point_group, name))


def _as_value_error(work: Callable[[str], T], text: str) -> T:
    """The result of ``work(text)``; its error becomes a ValueError, so that settings can name the field."""
    try:
        return work(text)
    except OrienteerError as error:
        raise ValueError(f"{error.message} {error.hint}") from None
