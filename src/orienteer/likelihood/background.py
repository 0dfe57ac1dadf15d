"""Background photons: their share of a pixel's light, and how much of it there is."""

from orienteer.compute.arrays import Array, array_namespace
from orienteer.errors import OrienteerError
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


def background_photons(merged: Array, share: Array, by_pixel: bool = False) -> Array:
    """Photons of a tile that were background, (P,) float64: sum over rows of merged counts * (1 - share).

    merged : (T, P) or (P, T) float32, sum over frames of responsibility times counts.
    share : the same shape, from :func:`signal_share`.
    """
    xp = array_namespace(merged)
    return xp.sum(merged * (1 - share), axis=1 if by_pixel else 0, dtype=xp.float64)


def update_background(photons: Array, n_frames: float, missing: Array | None = None) -> Array:
    """One step of expectation maximisation for the background, (P,) float32 photons per shot.

    photons : (P,) background photons of all frames: :func:`background_photons` summed over tiles and batches.
    n_frames : frames, or the sum of their weights.
    missing : (P,) frames in which the pixel was forbidden.
    """
    xp = array_namespace(photons)
    looked = n_frames - (0.0 if missing is None else missing) + 0.0 * photons
    return xp.where(looked > 0, photons / xp.where(looked > 0, looked, 1.0), 0.0).astype(xp.float32)


def estimate_background(counts: Array, shell: Array | None = None) -> Array:
    """Background photons per shot, (P,) float32, from frames without a particle.

    counts : (D, P) photons of blank (or junk) frames.
    shell : (P,) resolution shell of each pixel.  With few blanks a pixel's own mean is noisy; it is then
        drawn towards the mean of its shell by as much as the scatter between the shell's pixels allows (the
        posterior mean under a gamma prior whose width is measured from the same frames).

    >>> import numpy as np
    >>> estimate_background(np.array([[2, 0], [4, 0]]))
    array([3., 0.], dtype=float32)
    """
    xp = array_namespace(counts)
    if counts.ndim != 2 or len(counts) == 0:
        raise OrienteerError(
            f"frames of shape {counts.shape} hold no blank frame.",
            "Give frames without a particle, or let the background be fitted.",
        )
    D = len(counts)
    total = xp.sum(counts, axis=0, dtype=xp.float64)
    mean = total / D
    if shell is None:
        return mean.astype(xp.float32)
    n_shells = int(shell.max()) + 1
    n = xp.maximum(xp.bincount(shell, minlength=n_shells), 1)
    shell_mean = xp.bincount(shell, weights=mean, minlength=n_shells) / n
    deviation = mean - shell_mean[shell]
    variance = xp.bincount(shell, weights=deviation * deviation, minlength=n_shells) / xp.maximum(n - 1, 1)
    beyond_noise = variance - shell_mean / D
    # Under a gamma prior of mean m and variance v the posterior mean is (total + m k) / (D + k), k = m / v.
    some = beyond_noise > 0
    prior_frames = xp.where(some, shell_mean / xp.where(some, beyond_noise, 1.0), 1e12)
    k = prior_frames[shell]
    return ((total + shell_mean[shell] * k) / (D + k)).astype(xp.float32)
