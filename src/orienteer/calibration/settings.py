"""The ``[calibration]`` section: from what a detector reads out to photons."""

from pydantic import Field

from orienteer.settings.section import Section


class CalibrationSettings(Section):
    """The steps of a calibration, each of which can be left out; without constants frames pass untouched."""

    constants: str = Field(
        default="", description="HDF5 file of pedestal and gain for each pixel; empty: frames are photons."
    )
    adu_per_photon: float = Field(
        default=0.0, ge=0, le=1e9, description="Gain of every pixel, where the constants hold none; 0: 1."
    )
    subtract_pedestal: bool = Field(default=True, description="Take away what a pixel shows in the dark.")
    divide_by_gain: bool = Field(default=True, description="Turn ADU into photons.")
    common_mode: bool = Field(
        default=False, description="Take away what all pixels of a panel have too much in a single shot."
    )
    count_photons: bool = Field(default=True, description="Make whole photons of the signal.")
    photon_threshold: float = Field(
        default=0.5, gt=0, le=1, description="Signal from which a pixel has its first photon, in photons."
    )
