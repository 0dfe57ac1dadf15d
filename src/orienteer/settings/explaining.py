"""Errors in settings: one sentence that says what is wrong and where, and what to write instead."""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from orienteer.compute.nearest import nearest
from orienteer.errors import SettingsError
from orienteer.settings.dragonfly_names import called_here
from orienteer.settings.units import in_unit_of, unit_meant


def explain(
    error: ValidationError,
    sections: type[BaseModel],
    places: Mapping[tuple[str, ...], str],
    path: Path | str | None,
    number: int = 0,
) -> SettingsError:
    """Turn a problem that pydantic found into a SettingsError.

    sections : the class that was to be created.
    places : where each key was written (file and line, or flag), by its path of names.
    path : what to name if the place is not known.
    number : which of the problems; by default the first.
    """
    problem = error.errors(include_url=False)[number]
    keys = tuple(str(part) for part in problem["loc"])
    where = next(
        (places[keys[:n]] for n in range(len(keys), 0, -1) if keys[:n] in places), str(path or "settings")
    )
    name = keys[-1] if keys else ""
    if problem["type"] == "extra_forbidden":
        return _explain_unknown(where, keys, problem["input"], sections)
    section = f"[{'.'.join(keys[:-1])}] " if len(keys) > 1 else ""
    said = problem["msg"].removeprefix("Value error, ")
    said = "is not a number" if _is_nan(problem["input"]) else said[:1].lower() + said[1:]
    given = "" if problem["type"] == "value_error" and not keys else f" = {problem['input']!r}"
    hint = _meant(problem) or _how_to_write(name, problem) or unit_meant(name, problem["input"])
    return SettingsError(
        f"{where}: {section}{name}{given if len(given) < 80 else ''}: {said}.".replace("..", "."), hint
    )


def _explain_unknown(
    where: str, keys: tuple[str, ...], value: Any, sections: type[BaseModel]
) -> SettingsError:
    """An unknown key or section, with the one that was probably meant."""
    name, known = keys[-1], _known_keys(sections, keys[:-1])
    inside = f" in [{'.'.join(keys[:-1])}]" if len(keys) > 1 else ""
    is_above_all = not inside and _is_joined(sections)
    kind = "section" if is_above_all else "key"
    owners = " or ".join(
        f"[{section}]" for section in _known_keys(sections, ()) if name in _known_keys(sections, (section,))
    )
    if theirs := called_here(name, ".".join(keys[:-1])):
        return SettingsError(f"{where}: unknown {kind} '{name}'{inside}.", theirs)
    if is_above_all and not isinstance(value, Mapping):
        hint = (
            f"'{name}' belongs to {owners}: write that header above it." if owners else _all_of(known, kind)
        )
        return SettingsError(f"{where}: '{name}' is not in a section.", hint)
    meant, words = in_unit_of(name, value, known)
    if close := meant or nearest(name, known):
        hint = f"Did you mean '{close}'? {words}".strip()
    elif inside and owners:
        hint = f"'{name}' belongs to {owners}."
    else:
        hint = _all_of(known, kind, inside)
    return SettingsError(f"{where}: unknown {kind} '{name}'{inside}.", hint)


def _all_of(known: Sequence[str], kind: str, inside: str = "") -> str:
    return f"Known {kind}s{inside}: {', '.join(known)}."


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _how_to_write(name: str, problem: Any) -> str:
    """How to write a value of this type in TOML."""
    if problem["type"] == "tuple_type":
        return f'Write a list, such as  {name} = ["a", "b"]  or  {name} = [1, 2].'
    if problem["type"] == "string_type" and not isinstance(problem["input"], (dict, list, tuple)):
        return f'Write text in quotes:  {name} = "{problem["input"]}"'
    return ""


def _known_keys(sections: type[BaseModel], keys: Sequence[str]) -> list[str]:
    """The keys that the section at this place accepts."""
    model: type[BaseModel] = sections
    for key in keys:
        annotation = model.model_fields[key].annotation if key in model.model_fields else None
        if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
            return []
        model = annotation
    return list(model.model_fields)


def _is_joined(model: type[BaseModel]) -> bool:
    """Whether the fields of a class are sections rather than settings."""
    kinds = (field.annotation for field in model.model_fields.values())
    return all(isinstance(kind, type) and issubclass(kind, BaseModel) for kind in kinds)


def _meant(problem: Any) -> str:
    """The choice that a wrong word resembles."""
    if problem["type"] != "literal_error" or not isinstance(problem["input"], str):
        return ""
    choices = re.findall(r"'([^']*)'", problem["ctx"]["expected"])
    close = nearest(problem["input"], choices)
    return f"Did you mean '{close}'?" if close else ""
