"""The ``[validation]`` section: how a result is put to the test."""

from pydantic import Field

from orienteer.settings.section import Section


class ValidationSettings(Section):
    """Two independent runs of the halves of the data, and what their agreement says about the whole.

    >>> ValidationSettings(sentinels=0.1)
    ValidationSettings(sentinels=0.1)
    """

    sentinels: float = Field(
        default=0.05, ge=0, lt=0.5, description="Share of frames left out of both halves; both orient them."
    )
    replicates: int = Field(
        default=32,
        ge=0,
        le=10000,
        description="Groups of frames; the spread between them gives the error of each voxel; 0: none.",
    )
    random_phases: int = Field(
        default=3, ge=1, le=100, description="Draws of random phases that show what the mask adds to the FSC."
    )
