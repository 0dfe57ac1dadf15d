"""The user's filter: a Python function that decides by small data which frames are worth reading."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.errors import OrienteerError

_HINT = "Give module:function or file.py:function; it takes columns by name and returns (N,) bool."


class Filter:
    """Keeps the events for which the user's function is true.

    function : takes the columns of N events by name, each (N, ...), with ``event_id``; returns (N,) bool.
    """

    def __init__(self, function: Callable[[Mapping[str, NDArray[Any]]], Any], name: str) -> None:
        self.function, self.name = function, name

    def __call__(
        self, columns: Mapping[str, NDArray[Any]], event_id: NDArray[np.uint64] | None = None
    ) -> NDArray[np.bool_]:
        """(N,) bool: the events to keep."""
        if event_id is not None:
            columns = {**columns, "event_id": event_id}
        try:
            kept = np.asarray(self.function(columns))
        except KeyError as error:
            known = ", ".join(sorted(columns)) or "none"
            raise OrienteerError(
                f"filter {self.name}: there is no column {error}.", f"Columns: {known}."
            ) from error
        except Exception as error:
            raise OrienteerError(
                f"filter {self.name} failed: {type(error).__name__}: {error}",
                "Correct the function, or leave out --filter.",
            ) from error
        n_events = {len(column) for column in columns.values()}
        if kept.dtype != bool or kept.ndim != 1 or (n_events and {len(kept)} != n_events):
            expected = f"({min(n_events)},)" if n_events else "(N,)"
            raise OrienteerError(
                f"filter {self.name} gave {kept.dtype} of shape {kept.shape}; expected bool of {expected}.",
                "Return one True or False for each event.",
            )
        return kept


def load_filter(text: str) -> Filter:
    """The filter named by ``module:function`` or ``path/of/file.py:function``; imports and runs that code."""
    place, _, name = text.rpartition(":")
    if not place or not name.isidentifier():
        raise OrienteerError(f"'{text}' does not name a filter.", _HINT)
    try:
        module = _load_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise OrienteerError(f"filter '{text}' cannot be loaded ({what}).", _HINT) from error
    function = getattr(module, name, None)
    if not callable(function):
        raise OrienteerError(f"filter '{text}': there is no function '{name}' in {place}.", _HINT)
    return Filter(function, text)


def _load_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"orienteer_filter_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
