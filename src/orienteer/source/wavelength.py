"""The wavelength of a data set, from the wavelengths of its events."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orienteer.errors import OrienteerError
from orienteer.settings.units import unit_meant
from orienteer.source.base import Source

WAVELENGTH = "wavelength_A"
# The shortest wavelength in A that may be given; photons of 12 MeV are in no X-ray beam.
_SHORTEST_A = 0.001


@dataclass(frozen=True, eq=False)
class Wavelengths:
    """What N events say about their wavelength.

    known : (K,) of the events that say theirs, in A.
    n_events : N, these and the others.
    """

    known: NDArray[np.float64]
    n_events: int

    @property
    def usual_A(self) -> float | None:
        """The median, at which all events are taken; None if no event says its own."""
        return float(np.median(self.known)) if len(self.known) else None

    @property
    def n_unknown(self) -> int:
        """Events without a wavelength."""
        return self.n_events - len(self.known)

    @property
    def problem(self) -> str:
        """Why this cannot be the wavelength of X-rays in A; empty if it can."""
        usual_A = self.usual_A
        if usual_A is None or (usual_A >= _SHORTEST_A and not unit_meant(WAVELENGTH, usual_A)):
            return ""
        return f"the data say a wavelength of {usual_A:.4g} A, which X-rays do not have."

    @property
    def remedy(self) -> str:
        """What to do about the problem."""
        meant = unit_meant(WAVELENGTH, self.usual_A)
        is_metres = bool(meant) and (self.usual_A or 0.0) < _SHORTEST_A
        write = (
            f"Multiply the column {WAVELENGTH} by 1e10" if is_metres else f"Correct the column {WAVELENGTH}"
        )
        return f"{meant} {write}, or give --wavelength-A.".strip()

    def checked(self) -> "Wavelengths":
        """The same; an error if this cannot be the wavelength of X-rays in A."""
        if self.problem:
            raise OrienteerError(self.problem, self.remedy)
        return self

    @property
    def words_on_unknown(self) -> str:
        """A sentence if some events, but not all, have no wavelength of their own."""
        if self.usual_A is None or not self.n_unknown:
            return ""
        return (
            f"{self.n_unknown:,} of {self.n_events:,} frames have no wavelength of their own (0 or NaN); "
            f"the median of the others is used, {self.usual_A:.4g} A."
        )


def is_wavelength(column: ArrayLike) -> NDArray[np.bool_]:
    """Which events of a column say their wavelength; the others hold NaN or 0."""
    told: NDArray[Any] = np.asarray(column, dtype=np.float64)
    return np.asarray(np.isfinite(told) & (told > 0))


def known_wavelengths(column: ArrayLike | None) -> NDArray[np.float64]:
    """The known wavelengths of a column; events without one hold NaN or 0."""
    told: NDArray[Any] = np.asarray([] if column is None else column, dtype=np.float64)
    return np.asarray(told[is_wavelength(told)], dtype=np.float64)


def wavelengths_of(column: ArrayLike | None) -> Wavelengths:
    """What the events of a column say; None: there is no column.

    >>> wavelengths_of([2.0, 0, float("nan"), 2.5]).words_on_unknown
    '2 of 4 frames have no wavelength of their own (0 or NaN); the median of the others is used, 2.25 A.'
    """
    return Wavelengths(known_wavelengths(column), 0 if column is None else len(np.asarray(column)))


def wavelengths_in(source: Source) -> Wavelengths:
    """What the events of a source say."""
    there = WAVELENGTH in source.column_names and source.n_frames
    return wavelengths_of(source.read_columns([WAVELENGTH])[WAVELENGTH] if there else None)


def usual_wavelength(column: ArrayLike | None) -> float | None:
    """The median of the known wavelengths; None if no event has one.  It must be one of X-rays in A.

    >>> usual_wavelength([2.0, float("nan"), 2.5])
    2.25
    >>> usual_wavelength([2e-10, 2.5e-10])
    Traceback (most recent call last):
    orienteer.errors.OrienteerError: the data say a wavelength of 2.25e-10 A, which X-rays do not have.
    2.25e-10 m are 2.25 A. Multiply the column wavelength_A by 1e10, or give --wavelength-A.
    """
    return wavelengths_of(column).checked().usual_A
