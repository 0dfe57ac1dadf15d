"""The polarisation of the beam as files state it: by name, or by a factor for each pixel."""

from typing import Any

from numpy.typing import NDArray

from orienteer.detector.detector import POLARISATIONS, Detector, Polarisation
from orienteer.errors import OrienteerError


def check_polarisation(kind: Any) -> Polarisation:
    """Return the name, or raise an OrienteerError if it is not "x", "y" or "none"."""
    for known in POLARISATIONS:
        if kind == known:
            return known
    raise OrienteerError(f"polarisation '{kind}' is not one of {', '.join(POLARISATIONS)}.")


def polarisation_of(
    factors: NDArray[Any], detector: Detector, tolerance: float = 1e-3
) -> Polarisation | None:
    """The polarisation whose factors are proportional to these; None if none clearly fits best.

    factors : (P,) factor of each pixel; only pixels that the detector covers and that are > 0 count.
    tolerance : largest deviation from a proportion, as a standard deviation relative to the mean.
    """
    lit = detector.covered & (factors > 0)
    if not lit.any():
        return None
    spreads: list[tuple[float, Polarisation]] = []
    for kind in POLARISATIONS:
        ratio = factors[lit] / detector.polarisation(kind)[lit]
        spreads.append((float(ratio.std() / ratio.mean()), kind))
    (best, kind), (second, _), _ = sorted(spreads)
    # On a small or distant detector all factors are close to 1, and the kinds cannot be told apart.
    return kind if best < tolerance and best < 0.1 * second else None
