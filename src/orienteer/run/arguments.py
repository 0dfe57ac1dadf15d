"""Checks of the arguments of a run, before anything is written."""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from orienteer.errors import OrienteerError, SettingsError
from orienteer.run.method import MethodKind
from orienteer.settings.section import Section
from orienteer.source.base import Source


def as_folder(path: str | os.PathLike[str]) -> Path:
    """The path of a folder."""
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise OrienteerError(
            f"a run needs a folder, and {path!r:.80} is not a path.", "Give the path of a folder."
        )
    return Path(path)


def as_source(data: Any) -> Source:
    """The data: a source as it is; a path, an array or patterns are opened."""
    from orienteer.source.opening import open as open_source

    return open_source(data)


def as_seed(seed: int) -> int:
    """A seed, which is a whole number from 0 on."""
    number = _whole(seed)
    if number is None or number < 0:
        raise OrienteerError(
            f"the seed {seed!r:.80} is not a whole number from 0 on.", "Give a number such as 1."
        )
    return number


def as_count(n_steps: int | None) -> int | None:
    """A number of steps; None: all that are left."""
    number = _whole(n_steps)
    if n_steps is not None and (number is None or number < 0):
        raise OrienteerError(
            f"the number of steps {n_steps!r:.80} is not a whole number from 0 on.",
            "Give a number such as 100.",
        )
    return number


def as_section(kind: MethodKind, settings: Section | Mapping[str, Any] | None) -> Section:
    """The settings of a method.

    settings : its section; all sections joined; a dictionary of either; None for the defaults.
    """
    if settings is None:
        return kind.settings()
    if isinstance(settings, Mapping):
        given = settings.get(kind.name, settings)
        if not isinstance(given, Mapping):
            return as_section(kind, given)
        return kind.settings(**{str(key): value for key, value in given.items()})
    is_its_own = isinstance(settings, kind.settings)
    if is_its_own and type(settings).model_fields.keys() == kind.settings.model_fields.keys():
        return settings  # a derived section with more settings belongs to another method
    if isinstance(settings, Section) and kind.name in type(settings).model_fields:
        return cast(Section, getattr(settings, kind.name))
    raise SettingsError(
        f"{type(settings).__name__} holds no settings of the method '{kind.name}'.",
        f"Give {kind.settings.__name__}(...), a dictionary of its settings, or another method (method=).",
    )


def _whole(number: Any) -> int | None:
    """The number as an int; None if it is not a whole number, such as 1.5, "1" or True."""
    try:
        return None if isinstance(number, bool) else operator.index(number)
    except TypeError:
        return None
