"""Background photons: what they leave of a pixel's light to the particle.

Expectation gives each counted photon its share of signal, and so moves a model in an iteration by no more
than this share of what is wrong: by a hundredth where the background is a hundred times as strong.  Merges
therefore take the whole background off, and weigh each pixel by its share: least squares, which is there at
once.  The share is that of the radial mean; the model's own would weigh its noise.
"""

import numpy as np

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


def merged_signal(
    merged: Array, shown: Array, pixels: PixelModel, fluence: float, by_pixel: bool
) -> tuple[Array, Array]:
    """Merged photons without their background, times the share of signal; and this share, (P,) float32.

    merged : (T, P) or (P, T) float32, overwritten: weighted counts.
    shown : the weights summed over the frames, (T,), or where frames forbid pixels in the shape of merged.
    """
    xp = array_namespace(merged)
    ones = xp.ones((pixels.n_pixels, 1), dtype=np.float32)
    share = signal_share(ones, pixels, fluence, by_pixel=True)[:, 0]
    shown = shown.astype(np.float32)
    if shown.ndim == 1:
        shown = shown[None, :] if by_pixel else shown[:, None]
    of_pixel = (-1, 1) if by_pixel else (1, -1)
    merged -= pixels.background_or_zero.reshape(of_pixel) * shown
    merged *= share.reshape(of_pixel)
    return merged, share


def weights_of_pixels(pixel_weights: Array, row_weights: Array, lost: Array | None, by_pixel: bool) -> Array:
    """Weights (T, P) or (P, T) float32: those of the pixels (P,) times those of the rows (T,).

    lost : what rows lose at pixels that frames forbid, in the shape of the result.
    """
    row, pixel = (
        (row_weights[None, :], pixel_weights[:, None]) if by_pixel else (row_weights[:, None], pixel_weights)
    )
    return (pixel * (row if lost is None else row - lost)).astype(np.float32)
