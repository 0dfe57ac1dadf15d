"""Options of a kind of source: known by name and of the right type before anything is opened."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from orienteer.errors import SettingsError

# Types that can be told apart in what a user writes, by the word of an annotation; others are not looked at.
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
    """Refuse options that a kind of source does not have, and values that they cannot have.

    make : what opens such a source; its arguments are the options, but for the first ``n_given``, which the
        address tells.
    """
    parameters = inspect.signature(make).parameters.values()
    if any(each.kind == inspect.Parameter.VAR_KEYWORD for each in parameters):
        return  # whoever takes any name looks at it itself
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
    """Whether a value is of the type that a word means; true and false are no numbers."""
    return isinstance(value, _TYPES[word]) and (word == "bool" or not isinstance(value, bool))
