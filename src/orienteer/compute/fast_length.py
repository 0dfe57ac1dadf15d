"""Boxes that transform quickly: their edges have small prime factors only."""


def fast_length(least: int) -> int:
    """The next edge of a box, in voxels, whose real FFT is quick.

    >>> fast_length(161), fast_length(301)
    (162, 320)
    """
    from scipy.fft import next_fast_len

    return int(next_fast_len(least, real=True))
