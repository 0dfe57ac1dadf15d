"""Options of a kind of source: their names and types are checked before anything is opened."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from orienteer.errors import SettingsError

# Types that are checked, by their word in an annotation; options with other annotations are not checked.
_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "str": (str,),
    "None": (type(None),),
}
_WORDS = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "a text"}


def check_options(
    address: str, make: Callable[..., Any], options: Mapping[str, Any], n_given: int = 1
) -> None:
    """Refuse options that a kind of source does not have, and values of the wrong type.

    make : opens such a source; its arguments are the options, except the first ``n_given``, which come from
        the address.
    """
    parameters = inspect.signature(make).parameters.values()
    if any(each.kind == inspect.Parameter.VAR_KEYWORD for each in parameters):
        return  # what accepts any name checks the names itself
    known = {each.name: str(each.annotation) for each in list(parameters)[n_given:]}
    for name, value in options.items():
        if name not in known:
            raise SettingsError(
                f"{address}: there is no option '{name}' for this kind of source.",
                f"Options: {', '.join(known)}.",
            )
        words = [word.strip() for word in known[name].split("|")]
        if all(word in _TYPES for word in words) and not any(_is(value, word) for word in words):
            wanted = " or ".join(_WORDS[word] for word in words if word in _WORDS)
            raise SettingsError(
                f"{address}: option {name} is {value!r}, but should be {wanted}.",
                "Give it as --option NAME=VALUE.",
            )


def _is(value: Any, word: str) -> bool:
    """Whether a value is of the type that a word means; true and false do not count as numbers."""
    return isinstance(value, _TYPES[word]) and (word == "bool" or not isinstance(value, bool))
