"""Background photons: what they leave of a pixel's light to the particle."""

from orienteer.compute.arrays import Array, array_namespace
from orienteer.likelihood.pixel_model import PixelModel


def signal_share(slices: Array, pixels: PixelModel, fluence: float, by_pixel: bool = False) -> Array:
    """The share of each pixel's expected photons that the particle scattered: phi s / (phi s + b).

    slices (T, P) or (P, T) float32, as is the result.  It multiplies merged counts: the expected number of
    signal photons among K counted ones is K times the share.
    """
    xp = array_namespace(slices)
    signal = xp.float32(fluence) * pixels.signal(slices, by_pixel)
    background = pixels.background_or_zero.reshape((-1, 1) if by_pixel else (1, -1))
    # The signal is at least its floor; only a fluence of 0 makes a pixel without background dark.
    return signal / xp.maximum(signal + background, xp.float32(1e-37))
