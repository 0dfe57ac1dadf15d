"""The ``[mtip]`` section: the settings of the engine, and of what M-TIP adds to it."""

from typing import ClassVar, Literal

from pydantic import Field

from orienteer.mtip.references.kinds import Wish
from orienteer.reconstruction.settings import EmcSettings


class MtipSettings(EmcSettings):
    """Blind reconstruction of the autocorrelation, with phasing inside of the loop."""

    may_change: ClassVar[frozenset[str]] = EmcSettings.may_change | {"references"}

    phasing: bool = Field(
        default=True, description="Draw the autocorrelation towards that of a density, phased in the loop."
    )
    merging: Literal["grid", "exact"] = Field(
        default="grid",
        description="Through a grid between whose voxels slices lie; or pixel by pixel, which takes longer.",
    )
    tolerance: float = Field(
        default=1e-3, gt=1e-12, lt=0.1, description="Residual at which the search for a merge ends."
    )
    references: Wish = Field(
        default="auto",
        description="Slices: made anew for each batch, or kept by each rank, node, all ranks or on disk.",
    )
