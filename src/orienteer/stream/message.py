"""Messages of Orienteer's own streams: a JSON header, then one part of plain bytes for every array.

docs/reference/stream.md describes the layout.  Nothing in a message is ever executed, and every size is
compared with the bytes that really came before memory is allocated: whatever does not fit is ``Malformed``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.errors import OrienteerError
from orienteer.stream.sockets import MOST_PARTS

FORMAT, VERSION = "orienteer-stream", 1
MOST_HEADER_BYTES = 1 << 20
_MOST_AXES, _LONGEST_NAME = 8, 200
_DTYPE = re.compile(r"(\|b1|\|[iu]1|<[iu][248]|<f[248]|<c(8|16)|\|S[0-9]{1,4}|<U[0-9]{1,4})")
# Arrays with fewer bytes are copied, because they may start at addresses that their type does not allow.
_COPIED_BELOW = 1 << 16


class Malformed(OrienteerError):  # noqa: N818 - it is read as a statement
    """A message that is not in the agreed layout."""


@dataclass(frozen=True)
class Message:
    """A received message: its ``kind``, small facts in ``fields``, and the data by name in ``arrays``."""

    kind: str
    fields: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]

    def text(self, name: str) -> str:
        """A field that is a text."""
        value = self.fields.get(name)
        if not isinstance(value, str):
            raise Malformed(f"a message has no text '{name}'.")
        return value

    def number(self, name: str, most: int) -> int:
        """A field that is a whole number from 0 to ``most``."""
        value = self.fields.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
            raise Malformed(f"a message has no number '{name}' from 0 to {most}.")
        return value

    def table(self, name: str) -> dict[str, Any]:
        """A field that is a JSON object."""
        value = self.fields.get(name)
        if not isinstance(value, dict):
            raise Malformed(f"a message has no table '{name}'.")
        return value


def encode(
    kind: str, fields: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]] | None = None
) -> list[bytes | memoryview]:
    """The parts of a message."""
    parts: list[bytes | memoryview] = []
    layout: list[dict[str, Any]] = []
    for name, array in (arrays or {}).items():
        plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(array.shape)
        if not _DTYPE.fullmatch(plain.dtype.str):
            raise OrienteerError(f"'{name}' of type {array.dtype} cannot be sent.")
        layout.append({"name": name, "dtype": plain.dtype.str, "shape": list(plain.shape)})
        parts.append(plain.reshape(-1).view(np.uint8).data if plain.size else b"")
    header = {"format": FORMAT, "version": VERSION, "kind": kind, **fields, "arrays": layout}
    if len(parts) >= MOST_PARTS:
        raise OrienteerError(f"{len(parts)} arrays cannot be sent in one message.")
    return [json.dumps(header).encode(), *parts]


def decode(parts: Sequence[bytes | memoryview]) -> Message:
    """The message in these parts; raises ``Malformed`` if they hold none.  Large arrays are not copied."""
    if not parts or len(parts[0]) > MOST_HEADER_BYTES:
        raise Malformed("a message has no header of sound size.")
    try:
        header = json.loads(bytes(parts[0]).decode())
    except (ValueError, RecursionError) as error:
        raise Malformed("a header is not JSON.") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise Malformed("a header is not that of an Orienteer stream.")
    if header.get("version") != VERSION:
        raise Malformed(f"a message has version {header.get('version')!r}; this Orienteer reads {VERSION}.")
    kind, layout = header.get("kind"), header.get("arrays")
    if not isinstance(kind, str) or not isinstance(layout, list) or len(layout) != len(parts) - 1:
        raise Malformed("a header does not describe the parts after it.")
    arrays: dict[str, NDArray[Any]] = {}
    for entry, part in zip(layout, parts[1:], strict=True):
        name, array = _array(entry, part)
        if name in arrays:
            raise Malformed(f"array '{name}' occurs twice in a message.")
        arrays[name] = array
    return Message(kind, header, arrays)


def _array(entry: Any, part: bytes | memoryview) -> tuple[str, NDArray[Any]]:
    if not isinstance(entry, dict):
        raise Malformed("an array is not described.")
    name, dtype, shape = entry.get("name"), entry.get("dtype"), entry.get("shape")
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
        raise Malformed("an array has no sound name.")
    if not isinstance(dtype, str) or not _DTYPE.fullmatch(dtype):
        raise Malformed(f"array '{name}' is of a type that is not sent.")
    if not isinstance(shape, list) or len(shape) > _MOST_AXES or not all(map(_is_length, shape)):
        raise Malformed(f"array '{name}' has no sound shape.")
    kind = np.dtype(dtype)
    if math.prod(shape) * kind.itemsize != len(part) or kind.itemsize == 0:
        raise Malformed(f"array '{name}' does not have the bytes of its shape.")
    flat = np.frombuffer(part, np.uint8 if kind.kind == "b" else kind) if len(part) else np.empty(0, kind)
    if kind.kind == "b":
        flat = flat != 0  # the bytes may be other than 0 and 1
    elif kind.kind == "U" and flat.size and int(flat.view(np.uint32).max()) > 0x10FFFF:
        raise Malformed(f"array '{name}' holds values that are not text.")
    elif len(part) < _COPIED_BELOW or not flat.flags.aligned:
        flat = flat.copy()
    return name, flat.reshape(shape)


def _is_length(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 48
