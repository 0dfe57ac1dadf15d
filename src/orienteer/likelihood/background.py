"""Merging over a background: the share of the signal in the expected photons of a pixel.

Plain expectation maximisation multiplies each counted photon by its expected share of signal.  In one
iteration, it corrects only this share of a model's error: a hundredth if the background is a hundred times as
strong as the signal.  Merges therefore subtract the whole background and weight each pixel by its share of
signal: a least-squares estimate, which needs no iterations.  The share is computed from the radial mean of
the model, because weights from the model itself would depend on its noise.
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
    """Merged photons less their background, times the share of signal; and this share, (P,) float32.

    merged : (T, P) or (P, T) float32, overwritten: weighted counts.
    shown : sum of the weights over the frames that show a pixel: (T,), or in the shape of ``merged`` if
        frames forbid pixels.
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

    lost : sum of the weights of the frames that forbid a pixel, in the shape of the result; it is subtracted
        from the weight of the row.
    """
    row, pixel = (
        (row_weights[None, :], pixel_weights[:, None]) if by_pixel else (row_weights[:, None], pixel_weights)
    )
    return (pixel * (row if lost is None else row - lost)).astype(np.float32)
