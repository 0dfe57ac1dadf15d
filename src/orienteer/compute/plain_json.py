"""Values in types that JSON has, for logs and descriptions of results."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from orienteer.compute.atomic import atomic_path
from orienteer.compute.reading import reading, refuse_newer
from orienteer.errors import FileError


def plain(value: Any) -> Any:
    """The value in types that JSON has; numbers that are not finite become null.

    >>> plain({"q": np.array([1.0, np.nan]), "n": np.int64(3)})
    {'q': [1.0, None], 'n': 3}
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, Path):
        return str(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def json_line(value: Any) -> bytes:
    """The value as one line of JSON with its newline."""
    return json.dumps(plain(value), allow_nan=False, separators=(",", ":")).encode("ascii") + b"\n"


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Put the value in place as a file of JSON that people can read too, whole or not at all."""
    text = json.dumps(plain(value), allow_nan=False, indent=1) + "\n"
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="ascii")


def read_described(path: Path, what: str, format: str, version: int, hint: str = "") -> dict[str, Any]:
    """The description of a result that Orienteer has written as JSON.

    what : "phasing", "validation" ...; format, version : of the files that this Orienteer reads.
    hint : what to do if the file describes something else.
    """
    with reading(path, f"description of a {what}"):
        told = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(told, dict) or told.get("format") != format:
            raise FileError(path, f"does not describe a {what} of Orienteer.", hint)
        refuse_newer(path, told["version"], version)
        return told
