"""Arrays as PNG inside the page: a palette with 256 colours, or red, green, blue and opacity."""

from __future__ import annotations

import base64
import struct
import zlib
from functools import cache

import numpy as np
from numpy.typing import NDArray

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PALETTE, _RGBA = 3, 6
NOTHING = 255  # the palette's entry for missing values: grey


def encode_png(pixels: NDArray[np.uint8], palette: NDArray[np.uint8] | None = None) -> bytes:
    """A PNG file.

    pixels : (h, w) entries of the palette, or (h, w, 4) red, green, blue and opacity; the top row is first.
    palette : (256, 3) colours.
    """
    height, width = pixels.shape[:2]
    kind = _RGBA if palette is None else _PALETTE
    rows = np.ascontiguousarray(pixels.reshape(height, -1), np.uint8)
    content = b"".join(b"\0" + row.tobytes() for row in rows)  # each row begins with its filter: none
    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    chunks = [(b"IHDR", header)]
    if palette is not None:
        chunks.append((b"PLTE", np.ascontiguousarray(palette, np.uint8).tobytes()))
    chunks += [(b"IDAT", zlib.compress(content, 9)), (b"IEND", b"")]
    return _SIGNATURE + b"".join(_chunk(name, data) for name, data in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def data_link(content: bytes, kind: str) -> str:
    """A file as a data: address, which contains the whole file.

    >>> data_link(b"hi", "text/plain")
    'data:text/plain;base64,aGk='
    """
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


@cache
def palette_of(colours: str) -> NDArray[np.uint8]:
    """(256, 3) colours of a colour map of matplotlib; the last one is grey, for missing values."""
    import matplotlib

    table = np.asarray(matplotlib.colormaps[colours](np.linspace(0, 1, NOTHING))[:, :3])
    return np.vstack([np.rint(255 * table), [[150, 150, 150]]]).astype(np.uint8)


def as_entries(shares: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Entries of the palette for shares between 0 and 1; NaN becomes the entry for missing values."""
    entries = np.rint(np.clip(np.nan_to_num(shares), 0, 1) * (NOTHING - 1))
    return np.where(np.isnan(shares), NOTHING, entries).astype(np.uint8)
