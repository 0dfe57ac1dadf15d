"""How many there are, and how large, as people write it; every folder has something to count."""


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
