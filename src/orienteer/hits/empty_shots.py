"""Shots without particle from a file, for a hit finder to begin with."""

from collections.abc import Callable

from orienteer.errors import FileError
from orienteer.hits.warm_up import compact
from orienteer.source.opening import open as open_source
from orienteer.source.patterns import Patterns, concatenate

# More would hardly make a background better known.
MOST_SHOTS = 4096
_BATCH_BYTES = 128 * 2**20


def read_empty_shots(path: str, most: int, calibrate: Callable[[Patterns], Patterns]) -> Patterns:
    """The first shots of a file of empty ones, at most so many, as lists of photons where they are counts.

    calibrate : the same as for the shots that are compared with them: both are in photons then.
    """
    source = open_source(path)
    try:
        most = min(most, MOST_SHOTS, len(source))
        if not most:
            raise FileError(path, "holds no shots to learn the background from.", "Give another file.")
        size = max(1, _BATCH_BYTES // (4 * source.n_pixels))
        return concatenate(
            [
                compact(calibrate(source.read(slice(first, min(first + size, most)))))
                for first in range(0, most, size)
            ]
        )
    finally:
        source.close()
