"""Read shots without a particle from a file, from which a hit finder learns its first background."""

from collections.abc import Callable

from orienteer.errors import FileError
from orienteer.hits.warm_up import compact
from orienteer.source.opening import open as open_source
from orienteer.source.patterns import Patterns, concatenate

# More shots would hardly improve the background.
MOST_SHOTS = 4096
_BATCH_BYTES = 128 * 2**20


def read_empty_shots(path: str, most: int, calibrate: Callable[[Patterns], Patterns]) -> Patterns:
    """The first shots, at most ``most``, of a file of empty shots; photon counts come as lists of photons.

    calibrate : the same as for the shots to be judged, so that both are in photons.
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
