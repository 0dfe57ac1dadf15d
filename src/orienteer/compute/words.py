"""How many there are, as people write it; every folder has something to count."""


def counted(n: int, one: str, several: str = "") -> str:
    """A number and what it counts.

    >>> counted(1, "frame"), counted(2500, "frame"), counted(0, "class", "classes")
    ('1 frame', '2,500 frames', '0 classes')
    """
    return f"{n:,} {one if n == 1 else several or one + 's'}"
