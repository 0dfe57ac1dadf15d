"""The sentence that every report of a run shows first if its orientations were given and not found."""

from collections.abc import Mapping
from typing import Any

_NAMES = ("known_orientations_file", "known_orientations_column")


def known_orientations_in_words(section: Mapping[str, Any]) -> str:
    """One sentence, from the settings of a method; empty if all orientations were searched for.

    >>> known_orientations_in_words({"known_orientations_column": "truth_orientation"})
    'Known orientations were given, not found: known_orientations_column = truth_orientation.'
    >>> known_orientations_in_words({"symmetry": "I"})
    ''
    """
    given = [f"{name} = {section[name]}" for name in _NAMES if section.get(name)]
    return f"Known orientations were given, not found: {', '.join(given)}." if given else ""
