"""The ``[mtip]`` section: the settings of the engine, and of what M-TIP adds to it."""

from typing import Literal

from pydantic import Field

from orienteer.reconstruction.settings import EmcSettings


class MtipSettings(EmcSettings):
    """Blind reconstruction of the autocorrelation, with phasing inside of the loop."""

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
