"""Values from JSON files that may hold anything: the wanted type, or None or empty."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def at(tree: Any, *names: str) -> Any:
    """The value below these names; None if there is none.

    >>> at({"a": {"b": 3}}, "a", "b"), at({"a": 1}, "a", "b")
    (3, None)
    """
    for name in names:
        tree = tree.get(name) if isinstance(tree, Mapping) else None
    return tree


def as_number(value: Any) -> float | None:
    """The value if it is a finite number.

    >>> as_number(2), as_number("2"), as_number(True), as_number(float("inf")), as_number(10**400)
    (2.0, None, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def as_numbers(value: Any) -> list[float | None]:
    """The entries of a list as numbers; None for entries that are not numbers.

    >>> as_numbers([1, None, "x"]), as_numbers("12")
    ([1.0, None, None], [])
    """
    return [as_number(part) for part in value] if isinstance(value, list) else []


def as_count(value: Any) -> int | None:
    """The value if it is a whole number, 0 or more."""
    number = as_number(value)
    return int(number) if number is not None and number >= 0 and number == int(number) else None


def as_tables(value: Any) -> list[Mapping[str, Any]]:
    """The entries of a list that are tables of names and values.

    >>> as_tables([{"a": 1}, 3]), as_tables(3)
    ([{'a': 1}], [])
    """
    return [part for part in value if isinstance(part, Mapping)] if isinstance(value, list) else []


def as_words(value: Any) -> str:
    """The value if it is a text; otherwise empty."""
    return value if isinstance(value, str) else ""


def as_texts(value: Any) -> list[str]:
    """The entries of a list that are texts and not empty.

    >>> as_texts(["a", 3, ""]), as_texts("a")
    (['a'], [])
    """
    return [part for part in value if isinstance(part, str) and part] if isinstance(value, list) else []
