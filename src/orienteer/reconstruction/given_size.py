"""Compare a given diameter with the one that the frames show: most wrong ones were meant in nm."""

from orienteer.errors import SettingsError
from orienteer.volume.unit_mistakes import unit_mistake

# Diameters that differ by more than this factor cannot be of the same particle.
_DIFFERENT = 2.0


def refuse_too_small(given_A: float, edge_A: float, seen_A: float) -> None:
    """Refuse a diameter so small that the data would not reach the first speckle.

    edge_A : full-period resolution at the edge of the data.
    seen_A : diameter measured from the frames; 0 if they show none.
    """
    if given_A < edge_A:
        raise SettingsError(
            f"diameter_A = {given_A:g}: the data end at a resolution of {edge_A:.3g} A, which shows nothing "
            "of so small a particle.",
            f"{_seen(seen_A)} {unit_mistake(given_A, seen_A)}".strip() or "Give a larger diameter, or none.",
        )


def size_doubt(given_A: float, seen_A: float) -> str:
    """A warning if the given diameter is far from what the frames show; otherwise empty.

    >>> size_doubt(24.0, 249.0)  # doctest: +ELLIPSIS
    'A diameter of 24 A was given. The frames look like those of a particle of 249 A. Is one ...'
    >>> size_doubt(240.0, 249.0)
    ''
    """
    if not seen_A or 1 / _DIFFERENT <= given_A / seen_A <= _DIFFERENT:
        return ""
    return f"A diameter of {given_A:g} A was given. {_seen(seen_A)} {unit_mistake(given_A, seen_A)}".strip()


def _seen(seen_A: float) -> str:
    return f"The frames look like those of a particle of {seen_A:.3g} A." if seen_A else ""
