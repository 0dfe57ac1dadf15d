"""Messages of a Karabo bridge, formats 1.0 and 2.x, as plain tables of values and arrays.

Format 2 sends pairs of parts: a MessagePack header, and the values of a source (``content`` "msgpack") or one
raw array ("array").  Format 1.0 is a single MessagePack map in which arrays are maps with the keys nd, type,
shape and data.  Arrays of Python objects, which would have to be unpickled, are refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.extras import how_to_install
from orienteer.errors import OrienteerError
from orienteer.stream.message import Malformed

_NAMES = re.compile(r"(bool_?|u?int(8|16|32|64)|float(16|32|64)|complex(64|128))")
_CODES = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248]|c(8|16)|[SU][0-9]{1,4})")
_MOST_AXES = 8


@dataclass
class KaraboData:
    """What a source sent for one train: values and arrays by key, and ``metadata`` such as timestamp.tid."""

    values: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def train_id(self) -> int:
        """The train that the data belong to."""
        train = self.metadata.get("timestamp.tid")
        if not isinstance(train, int) or not 0 <= train < 1 << 47:
            raise Malformed("a source does not state its train.")
        return train


def import_msgpack() -> Any:
    """The library; if it is missing, the error says what to install."""
    try:
        import msgpack
    except ImportError as error:
        raise OrienteerError(
            "Karabo bridges need msgpack.", f"Install it: {how_to_install('live')}."
        ) from error
    return msgpack


def decode_karabo(parts: Sequence[bytes | memoryview]) -> dict[str, KaraboData]:
    """The content of a message by the name of the source; raises ``Malformed`` if it is not one."""
    if len(parts) == 1:
        return _decode_1(_unpack(parts[0]))
    if len(parts) == 0 or len(parts) % 2:
        raise Malformed(f"a message has {len(parts)} parts; expected pairs.")
    found: dict[str, KaraboData] = {}
    for k in range(0, len(parts), 2):
        header = _unpack(parts[k])
        source, content = header.get("source"), header.get("content")
        if not isinstance(source, str):
            raise Malformed("a header names no source.")
        data = found.setdefault(source, KaraboData())
        if content == "msgpack":
            data.values.update(_unpack(parts[k + 1]))
            metadata = header.get("metadata")
            data.metadata = metadata if isinstance(metadata, dict) else {}
        elif content in ("array", "ImageData"):
            path = header.get("path")
            if not isinstance(path, str):
                raise Malformed("an array has no path.")
            key = path if content == "array" else f"{path}.data"
            data.values[key] = _array(parts[k + 1], header.get("dtype"), header.get("shape"))
        else:
            raise Malformed("a header states no known content.")
    return found


def _decode_1(message: dict[str, Any]) -> dict[str, KaraboData]:
    found: dict[str, KaraboData] = {}
    for source, values in message.items():
        if not isinstance(source, str) or not isinstance(values, dict):
            raise Malformed("a message is not a table of sources.")
        metadata = values.pop("metadata", {})
        plain = {str(key): _value_1(value) for key, value in values.items()}
        found[source] = KaraboData(plain, metadata if isinstance(metadata, dict) else {})
    return found


def _value_1(value: Any) -> Any:
    """A value of format 1.0: maps with the key "nd" are arrays or numbers of NumPy."""
    if not isinstance(value, dict):
        return value
    entry = {key.decode("ascii", "replace") if isinstance(key, bytes) else key: v for key, v in value.items()}
    if "nd" not in entry:
        return value
    kind, dtype = entry.get("kind"), entry.get("type")
    if kind not in (None, b"", "") or not isinstance(entry.get("data"), bytes):
        raise Malformed("an array is of a kind that is not read.")
    dtype = dtype.decode("ascii", "replace") if isinstance(dtype, bytes) else dtype
    array = _array(entry["data"], dtype, entry.get("shape") if entry["nd"] else [1])
    return array if entry["nd"] else array[0].item()


def _array(content: bytes | memoryview, dtype: Any, shape: Any) -> NDArray[Any]:
    if not isinstance(dtype, str) or not (_NAMES.fullmatch(dtype) or _CODES.fullmatch(dtype)):
        raise Malformed("an array is of a type that is not read.")
    if not isinstance(shape, list | tuple) or len(shape) > _MOST_AXES:
        raise Malformed("an array has no sound shape.")
    if not all(type(n) is int and 0 <= n < 1 << 48 for n in shape):
        raise Malformed("an array has no sound shape.")
    kind = np.dtype(dtype)
    if kind.itemsize == 0 or math.prod(shape) * kind.itemsize != len(content):
        raise Malformed("an array does not have the bytes of its shape.")
    if not len(content):
        return np.empty(shape, kind)
    array = np.frombuffer(content, kind).reshape(shape)
    return array if array.dtype.isnative and array.flags.aligned else array.astype(kind.newbyteorder("="))


def _unpack(part: bytes | memoryview) -> dict[Any, Any]:
    msgpack = import_msgpack()
    try:
        value = msgpack.unpackb(part, raw=False)
    except Exception as error:  # for bytes that are not MessagePack, the library raises errors of many kinds
        raise Malformed("a part is not MessagePack.") from error
    if not isinstance(value, dict):
        raise Malformed("a part holds no table.")
    return value
