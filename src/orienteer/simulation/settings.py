"""The ``[simulate]`` section: the number of frames, and everything that makes an experiment imperfect."""

from math import inf
from typing import Literal, Self

from pydantic import Field, model_validator

from orienteer.settings.section import Section


class SimulateSettings(Section):
    """The simulated experiment; by default an ideal one with Poisson noise.

    >>> SimulateSettings(frames=500, photons_per_frame=1000, fluence_jitter=0.3)
    SimulateSettings(frames=500, photons_per_frame=1000.0, fluence_jitter=0.3)
    """

    frames: int = Field(default=1000, ge=1, le=10**12, description="Frames to simulate.")
    seed: int = Field(default=0, ge=0, lt=2**64, description="Seed of every random draw.")
    batch: int = Field(
        default=0, ge=0, le=10**6, description="Frames made at a time; 0 picks a number that fits in memory."
    )
    accuracy: float = Field(
        default=1e-4, ge=1e-6, le=1e-2, description="Relative L2 error of noise-free intensities."
    )
    poisson: bool = Field(default=True, description="Draw photon counts; false keeps the expected photons.")
    photons_per_frame: float = Field(
        default=0.0,
        ge=0,
        le=1e12,
        description="Mean photons of a single hit on used pixels; 0: as the beam's fluence gives.",
    )

    fluence_jitter: float = Field(
        default=0.0,
        ge=0,
        le=3,
        description="Relative standard deviation of the fluence, log-normal with mean 1.",
    )
    fluence_file: str = Field(
        default="", description="Text file of measured fluences to draw from at random, scaled to mean 1."
    )
    size_spread: float = Field(
        default=0.0, ge=0, le=0.3, description="Relative standard deviation of the particle size."
    )
    centre_jitter_m: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Standard deviation of the beam centre on the detector, in metres.",
    )

    empty_fraction: float = Field(default=0.0, ge=0, le=1, description="Share of shots without a particle.")
    junk_fraction: float = Field(
        default=0.0, ge=0, le=1, description="Share of shots with droplets or debris."
    )
    multiple_fraction: float = Field(
        default=0.0, ge=0, le=1, description="Share of shots with several particles."
    )
    most_particles: int = Field(default=2, ge=2, le=8, description="Most particles in a shot with several.")
    separation_A: float = Field(
        default=0.0,
        ge=0,
        le=1e9,
        description="Mean distance between the particles of one shot in A; 0: they touch.",
    )
    interference: Literal["auto", "always", "never"] = Field(
        default="auto",
        description="Whether particles of one shot interfere; auto: if the pixels resolve the fringes.",
    )

    background_photons: float = Field(default=0.0, ge=0, le=1e12, description="Background photons per frame.")
    background_slope: float = Field(
        default=0.0,
        ge=-1,
        le=1,
        description="Relative rise of the background from the centre to the edge along x.",
    )
    background_jitter: float = Field(
        default=0.0,
        ge=0,
        le=3,
        description="Relative standard deviation of the background, log-normal with mean 1.",
    )
    background_file: str = Field(
        default="", description="NumPy file of expected background photons per pixel, added to the rest."
    )

    readout: Literal["counting", "integrating"] = Field(
        default="counting", description="Photon counts, or the signal of an integrating detector."
    )
    gain_adu: float = Field(
        default=1.0, gt=0, le=1e6, description="ADU per photon of an integrating detector."
    )
    noise_adu: float = Field(
        default=0.0, ge=0, le=1e6, description="Read-out noise in ADU, root mean square."
    )
    gain_thresholds_photons: tuple[float, ...] = Field(
        default=(),
        max_length=2,
        description="Photons above which a pixel switches to its second and third gain.",
    )
    gain_ratios: tuple[float, ...] = Field(
        default=(), max_length=2, description="Second and third gain relative to the first."
    )
    saturation_photons: float = Field(
        default=0.0, ge=0, le=1e12, description="Most photons that a pixel can measure; 0: no limit."
    )
    calibrated: bool = Field(default=True, description="Turn ADU back into photons; false keeps raw ADU.")

    dead_pixel_fraction: float = Field(default=0.0, ge=0, lt=1, description="Share of pixels that are dead.")
    dead_panels: tuple[str, ...] = Field(default=(), description="Panels or groups of panels that are dead.")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.empty_fraction + self.junk_fraction + self.multiple_fraction > 1:
            raise ValueError("empty_fraction, junk_fraction and multiple_fraction add up to more than 1")
        if len(self.gain_thresholds_photons) != len(self.gain_ratios):
            raise ValueError("gain_thresholds_photons and gain_ratios must have the same length")
        if not all(0 < value < inf for value in (*self.gain_ratios, *self.gain_thresholds_photons)):
            raise ValueError("gain_ratios and gain_thresholds_photons must be positive and finite")
        integrating = {"gain_adu": 1.0, "noise_adu": 0.0, "gain_ratios": (), "saturation_photons": 0.0}
        changed = [key for key, ideal in integrating.items() if getattr(self, key) != ideal]
        if self.readout == "counting" and changed:
            raise ValueError(f'{", ".join(changed)} needs readout = "integrating"')
        if list(self.gain_thresholds_photons) != sorted(self.gain_thresholds_photons):
            raise ValueError("gain_thresholds_photons must be in rising order")
        return self
