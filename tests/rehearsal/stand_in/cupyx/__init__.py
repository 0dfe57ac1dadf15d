"""What CuPy has beyond NumPy, as far as it is used."""

from typing import Any


def scatter_add(a: Any, slices: Any, value: Any) -> None:
    a.scatter_add(slices, value)
