"""From photons to the signal of an integrating detector: gain switching, noise, saturation, dead pixels."""

from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, array_namespace
from orienteer.detector.detector import Detector
from orienteer.errors import OrienteerError
from orienteer.simulation.photons import draw_normal
from orienteer.simulation.random_streams import random_stream


class ReadOut(NamedTuple):
    """The signal of an integrating detector.

    adu : (N, P) float32, the raw signal in whole ADU.
    stage : (N, P) uint8, the gain stage of each pixel.
    saturated : (N, P) bool, whether the signal was cut off.
    """

    adu: Array
    stage: Array
    saturated: Array


@dataclass(frozen=True)
class DetectorResponse:
    """Response of pixels that integrate charge and switch to a lower gain if the signal is large.

    gain_adu : ADU per photon in the first stage (stage 0).
    noise_adu : read-out noise in ADU, the same in every stage (so single photons are lost after switching).
    thresholds_photons : photons above which a pixel uses stage 1, 2, ...
    ratios : gain of stage 1, 2, ... relative to the first.
    saturation_photons : largest signal in photons; larger signals are cut off there.
    """

    gain_adu: float = 1.0
    noise_adu: float = 0.0
    thresholds_photons: tuple[float, ...] = ()
    ratios: tuple[float, ...] = ()
    saturation_photons: float = inf

    @property
    def gains_adu(self) -> NDArray[np.float32]:
        """ADU per photon of each stage."""
        return np.array([self.gain_adu, *(self.gain_adu * ratio for ratio in self.ratios)], np.float32)

    def read_out(self, photons: Array, seed: int, event_id: Array) -> ReadOut:
        """The signal for photons (N, P), counted or expected."""
        xp = array_namespace(photons)
        signal = photons.astype(xp.float32)
        stage = xp.zeros(signal.shape, dtype=xp.uint8)
        for threshold in self.thresholds_photons:
            stage += (signal > threshold).astype(xp.uint8)
        gain = xp.asarray(self.gains_adu)[stage]
        adu = signal * gain
        if self.noise_adu > 0:
            adu += xp.float32(self.noise_adu) * draw_normal(adu, seed, event_id)
        limit = xp.float32(self.saturation_photons) * gain
        return ReadOut(xp.round(xp.minimum(adu, limit)), stage, adu >= limit)

    def calibrate(self, adu: Array, stage: Array) -> Array:
        """Signal in photons (N, P) float32 from raw ADU and gain stage, as a facility calibrates it."""
        xp = array_namespace(adu)
        return adu / xp.asarray(self.gains_adu)[stage]


def dead_pixels(detector: Detector, fraction: float, panels: tuple[str, ...], seed: int) -> NDArray[np.bool_]:
    """(P,) which pixels are dead: a random share of all, and every pixel of the named panels or groups."""
    dead = random_stream(seed, "dead pixels").random(detector.n_pixels) < fraction
    for name in panels:
        chosen = [panel for panel in detector.panels if panel.belongs_to(name)]
        if not chosen:
            known = sorted({panel.name for panel in detector.panels})
            raise OrienteerError(
                f"detector '{detector.name}' has no panel or group '{name}'.",
                f"Its panels: {', '.join(known[:20]) or 'none'}.",
            )
        for panel in chosen:
            dead[panel.frame_indices().reshape(-1)] = True
    return dead
