"""Calibration: converts what a detector reads out to photons, in the steps that the settings choose."""

import numpy as np
from numpy.typing import NDArray

from orienteer.calibration.constants import Constants, read_constants
from orienteer.calibration.conversion import Conversion
from orienteer.calibration.settings import CalibrationSettings
from orienteer.compute.arrays import Array
from orienteer.detector.detector import Detector
from orienteer.detector.masks import PixelUse
from orienteer.errors import GeometryMismatch, OrienteerError, SettingsError
from orienteer.source.patterns import Patterns

GAIN_STAGE = "gain_stage"


class Calibration:
    """Applies pedestal, common mode and gain to raw frames, and counts photons.

    Frames that are already counts pass unchanged, unless the settings name constants, a gain or a common
    mode.  Float signal becomes photons, unless the settings say otherwise.

    detector : gives each panel its own common mode, without masked pixels; None: the frame is one panel.
    constants : used instead of those that the settings name.
    """

    def __init__(
        self,
        settings: CalibrationSettings,
        n_pixels: int,
        detector: Detector | None = None,
        constants: Constants | None = None,
    ) -> None:
        self.settings, self.n_pixels = settings, n_pixels
        if constants is None and settings.constants:
            constants = read_constants(settings.constants, n_pixels)
        self.is_asked = constants is not None or settings.adu_per_photon > 0 or settings.common_mode
        stages = _stages(settings, constants or Constants(), n_pixels)
        panel = np.full(n_pixels, -1, np.int32)
        if settings.common_mode:
            panel = _panels(n_pixels, detector)
        threshold = settings.photon_threshold if settings.count_photons else None
        self._conversion = Conversion(*stages, panel, threshold)

    def __call__(self, raw: Patterns) -> Patterns:
        """The same shots in photons, (N, P) uint16, or as signal in photons, (N, P) float32."""
        if raw.n_pixels != self.n_pixels:
            raise GeometryMismatch(
                f"frames have {raw.n_pixels} pixels, but the calibration is for {self.n_pixels}.",
                "Give the constants of this detector.",
            )
        if raw.is_sparse:
            if self.is_asked:
                raise OrienteerError(
                    "lists of photons cannot be calibrated: they are counts already.",
                    "Leave out the settings of [calibration] for these data.",
                )
            return raw
        is_signal = raw.frames.dtype.kind == "f"
        if not self.is_asked and not (is_signal and self.settings.count_photons):
            return raw
        stage = self._stage(raw)
        columns = {name: column for name, column in raw.columns.items() if name != GAIN_STAGE}
        return Patterns(self._conversion(raw.frames, stage), raw.event_id, columns, raw.has_event_ids)

    def _stage(self, raw: Patterns) -> Array | None:
        """The gain stage (N, P) of each value; None if the constants know only the first."""
        stage, n_stages = raw.columns.get(GAIN_STAGE), len(self._conversion.pedestal)
        if stage is not None and stage.size and (highest := int(stage.max())) >= n_stages:
            raise OrienteerError(
                f"the shots have values of gain stage {highest} ('{GAIN_STAGE}' counts from 0), but the "
                f"number of stages in the constants is {n_stages}.",
                "Give constants for every stage, one after another along the first axis.",
            )
        if n_stages == 1:
            return None
        if stage is None or stage.size != raw.frames.size:
            raise OrienteerError(
                f"the constants have {n_stages} gain stages, but the shots have no "
                f"column '{GAIN_STAGE}' with the stage of each value.",
                "Add the column, or give constants of one stage.",
            )
        return stage.reshape(raw.frames.shape)


def _stages(
    settings: CalibrationSettings, constants: Constants, n_pixels: int
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Pedestal and inverse gain, (S, P) each, and the ADU of a photon (P,) in the first stage.

    S is the largest number of gain stages among the constants.  The ADU of a photon holds whether or not
    frames are divided by the gain.
    """
    given_gain = constants.gain_adu
    if settings.adu_per_photon > 0:
        if given_gain is not None and settings.divide_by_gain:
            raise SettingsError(
                "both adu_per_photon and the constants give the gain.",
                "Leave out adu_per_photon, or the gain in the file of constants.",
            )
        given_gain = np.full((1, n_pixels), settings.adu_per_photon, np.float32)
    ones = np.ones((1, n_pixels), np.float32)
    known_gain = ones if given_gain is None else given_gain
    gain = known_gain if settings.divide_by_gain else ones
    pedestal = constants.pedestal_adu if settings.subtract_pedestal else None
    pedestal = np.zeros_like(ones) if pedestal is None else pedestal
    n_stages = max(len(pedestal), len(gain))
    if {len(pedestal), len(gain)} - {1, n_stages}:
        raise SettingsError(
            f"the constants have {len(pedestal)} stages of pedestal and {len(gain)} of gain.",
            "Give both the same number of stages, or one of them a single stage.",
        )
    shape = (n_stages, n_pixels)
    pedestal, gain = np.broadcast_to(pedestal, shape), np.broadcast_to(gain, shape)
    inverse_gain = np.ascontiguousarray(1 / gain, dtype=np.float32)
    return np.ascontiguousarray(pedestal), inverse_gain, np.ascontiguousarray(known_gain[0])


def _panels(n_pixels: int, detector: Detector | None) -> NDArray[np.int32]:
    """The number (P,) of the panel of each pixel; -1 for pixels that are masked or in no panel."""
    if detector is None or not detector.panels:
        return np.zeros(n_pixels, np.int32)
    panel = np.full(n_pixels, -1, np.int32)
    for number, one in enumerate(detector.panels):
        panel[one.frame_indices().reshape(-1)] = number
    panel[detector.mask >= PixelUse.NEVER] = -1
    return panel
