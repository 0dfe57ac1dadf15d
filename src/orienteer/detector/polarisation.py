"""How the beam was polarised, as files say it: by name, or by the factors they hold for each pixel."""

from typing import Any

from numpy.typing import NDArray

from orienteer.detector.detector import POLARISATIONS, Detector, Polarisation
from orienteer.errors import OrienteerError


def check_polarisation(kind: Any) -> Polarisation:
    """The name, when it is one of "x", "y" and "none"."""
    for known in POLARISATIONS:
        if kind == known:
            return known
    raise OrienteerError(f"polarisation '{kind}' is not one of {', '.join(POLARISATIONS)}.")


def polarisation_of(
    factors: NDArray[Any], detector: Detector, tolerance: float = 1e-3
) -> Polarisation | None:
    """The polarisation whose factors these are, in proportion; None where none fits better than the others.

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
    # On a small or distant detector all factors are 1, and nothing can be told.
    return kind if best < tolerance and best < 0.1 * second else None
