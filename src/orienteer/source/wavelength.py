"""The wavelength of a data set, from the wavelengths of its events."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

WAVELENGTH = "wavelength_A"


def known_wavelengths(column: ArrayLike | None) -> NDArray[np.float64]:
    """The known wavelengths of a column; events without one hold NaN or 0."""
    told: NDArray[Any] = np.asarray([] if column is None else column, dtype=np.float64)
    return np.asarray(told[np.isfinite(told) & (told > 0)], dtype=np.float64)


def usual_wavelength(column: ArrayLike | None) -> float | None:
    """The median of the known wavelengths; None if no event has one.

    >>> usual_wavelength([2.0, float("nan"), 2.5])
    2.25
    """
    known = known_wavelengths(column)
    return float(np.median(known)) if len(known) else None
