"""Streams of random numbers: one per quantity, so that switching on one imperfection changes no other."""

import numpy as np

from orienteer.errors import OrienteerError

# The position of a name seeds its stream, so never reorder: add new names at the end.
STREAMS = (
    "orientation",
    "fluence",
    "class",
    "kind",
    "number",
    "position",
    "offset",
    "size",
    "spectrum",
    "background",
    "dead pixels",
    "junk",
    "photons",
    "event",
    "pilot",
)
FRAME_BITS = 40


def random_stream(seed: int, stream: str, block: int = 0) -> np.random.Generator:
    """The generator of one block of one stream; no other seed, stream or block shares its numbers."""
    return np.random.default_rng(_sequence(seed, stream, block))


def random_words(seed: int, stream: str, n: int) -> list[int]:
    """n random 32-bit words."""
    return [int(word) for word in _sequence(seed, stream, 0).generate_state(n, np.uint32)]


def first_event_id(seed: int) -> int:
    """Event id of frame 0: 23 bits of a hash of the seed above 40 bits for the frame's number.

    Frames of simulations with different seeds then keep different ids if they are joined.
    """
    # The highest bit stays 0, so that ids are positive for readers that only know signed integers.
    return (random_words(seed, "event", 1)[0] >> 9) << FRAME_BITS


def _sequence(seed: int, stream: str, block: int) -> np.random.SeedSequence:
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise OrienteerError(f"the seed is {seed!r}; expected a whole number from 0.", "Give 1, for example.")
    # A spawn key, because NumPy pads plain entropy with zeros: (seed, 0, 0) would equal seed alone.
    return np.random.SeedSequence(int(seed), spawn_key=(STREAMS.index(stream), block))
