"""The ``[calibration]`` section: how to convert what a detector reads out to photons."""

from pydantic import Field

from orienteer.settings.section import Section


class CalibrationSettings(Section):
    """The steps of a calibration, each of which can be left out; without constants counts pass unchanged."""

    constants: str = Field(
        default="", description="HDF5 file of pedestal and gain for each pixel; empty: frames are photons."
    )
    adu_per_photon: float = Field(
        default=0.0, ge=0, le=1e9, description="Gain in ADU of every pixel, if the constants hold none; 0: 1."
    )
    subtract_pedestal: bool = Field(default=True, description="Subtract what each pixel reads in the dark.")
    divide_by_gain: bool = Field(default=True, description="Divide by the gain: ADU become photons.")
    common_mode: bool = Field(
        default=False, description="Subtract the offset that all pixels of a panel share in a single shot."
    )
    count_photons: bool = Field(default=True, description="Convert the signal to whole photons.")
    photon_threshold: float = Field(
        default=0.5, gt=0, le=1, description="Signal, in photons, from which a pixel has its first photon."
    )
