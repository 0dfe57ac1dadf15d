"""Checks of the numbers that a caller gave, before they enter a formula."""

from textwrap import shorten
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orienteer.errors import OrienteerError


def as_numbers(values: ArrayLike, name: str, hint: str = "") -> NDArray[np.float64]:
    """The values as float64, all of them finite; error messages call them ``name``."""
    try:
        numbers = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        given = shorten(repr(values), 80)
        raise OrienteerError(f"{name} must be numbers, all rows equally long, got {given}.", hint) from error
    if not np.isfinite(numbers).all():
        n_wrong = np.count_nonzero(~np.isfinite(numbers))
        raise OrienteerError(f"{name} holds {n_wrong} values that are not finite.", hint)
    return numbers


def as_numbers_for_each(values: ArrayLike, name: str, n: int, of_what: str) -> NDArray[np.float64]:
    """One number for all, or one for each of n things, as (n,) float64.

    >>> as_numbers_for_each(2, "sigmas_A", 3, "positions").tolist()
    [2.0, 2.0, 2.0]
    """
    numbers = as_numbers(values, name)
    if numbers.shape not in ((), (1,), (n,)):
        raise OrienteerError(
            f"{name} has shape {numbers.shape}, but there are {n} {of_what}.",
            f"Give one number, or one for each of the {of_what}.",
        )
    return np.broadcast_to(numbers, (n,)).copy()


def as_vector_A(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Three lengths along x, y and z, (3,) Å."""
    vector = as_numbers(values, name)
    if vector.shape != (3,):
        raise OrienteerError(
            f"{name} must be three numbers in Å, got shape {vector.shape}.", "Give (x, y, z)."
        )
    return vector


def as_positive(value: Any, name: str, unit: str, hint: str = "") -> float:
    """One number above zero."""
    number = as_numbers(value, name, hint)
    if number.ndim != 0 or not number > 0:
        raise OrienteerError(f"{name} must be one positive number in {unit}, got {value}.", hint)
    return float(number)
