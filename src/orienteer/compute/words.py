"""Counts, sizes and durations as people write them; used by every folder."""


def counted(n: int, one: str, several: str = "") -> str:
    """A number and what it counts.

    >>> counted(1, "frame"), counted(2500, "frame"), counted(0, "class", "classes")
    ('1 frame', '2,500 frames', '0 classes')
    >>> counted(1, "frame is", "frames are") + " lost"
    '1 frame is lost'
    """
    return f"{n:,} {one if n == 1 else several or one + 's'}"


def in_bytes(n: float) -> str:
    """A number of bytes with a unit that suits it.

    >>> in_bytes(0), in_bytes(1234), in_bytes(5.6e9)
    ('0 B', '1.23 kB', '5.6 GB')
    """
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n >= size:
            return f"{n / size:.3g} {unit}"
    return f"{n:.0f} B"


def in_three_digits(value: float) -> str:
    """A number with the three digits that are known of most quantities, and commas between thousands.

    >>> [in_three_digits(v) for v in (17023207.4, 1234, 0.012345)]
    ['17,000,000', '1,230', '0.0123']
    """
    return f"{float(f'{value:.3g}'):,.12g}"


def time_in_words(seconds: float) -> str:
    """A duration with as much detail as a reader needs.

    >>> [time_in_words(s) for s in (0.0123, 4.56, 75, 3725, 100000)]
    ['0.012 s', '4.6 s', '1:15 min', '1:02 h', '27:46 h']
    """
    if seconds < 59.5:
        return f"{seconds:.2g} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d} min" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d} h"
