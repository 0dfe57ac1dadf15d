"""The ``[mtip]`` section: the settings of the engine, and those that M-TIP adds."""

from typing import ClassVar, Literal

from pydantic import Field

from orienteer.mtip.references.kinds import Wish
from orienteer.reconstruction.settings import EmcSettings


class MtipSettings(EmcSettings):
    """Blind reconstruction of the autocorrelation, with phasing inside the loop."""

    may_change: ClassVar[frozenset[str]] = EmcSettings.may_change | {"references"}

    phasing: bool = Field(
        default=True, description="Draw the autocorrelation towards that of a density phased in the loop."
    )
    merging: Literal["grid", "exact"] = Field(
        default="grid",
        description="Merge frames on a grid; or exactly, pixel by pixel, slower and not deterministic.",
    )
    tolerance: float = Field(
        default=1e-3, gt=1e-12, lt=0.1, description="Relative residual at which the solver of a merge stops."
    )
    references: Wish = Field(
        default="auto",
        description="Make slices anew for each batch, or keep a copy per rank, node or run, or on disk.",
    )
