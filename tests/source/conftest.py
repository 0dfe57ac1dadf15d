"""Damage to files, drawn from a seed, for tests of the readers."""

import io
import random
import shutil
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import h5py
import numpy as np
import pytest

# Damage to bytes; each takes a sound file and gives a broken one.

HUGE = [2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63 - 1, 2**64 - 1]
HEADS = [
    b"\x89HDF\r\n\x1a\n",
    b"\x93NUMPY\x01\x00",
    b"PK\x03\x04",
    b"\x89PNG\r\n\x1a\n",
    b"%PDF-1.7\n",
    b"MAP ",
]
WORDS = ["nan", "inf", "-1", "1e400", "99999999999999999999", "", "x" * 300, "\x00", "0"]


def some_place(draw: random.Random, content: bytes) -> int:
    """Anywhere, but half of the time in the first bytes, where formats say what they are."""
    return draw.randrange(min(len(content), 512) if draw.random() < 0.5 else len(content))


def overwrite(content: bytes, at: int, patch: bytes) -> bytes:
    return content[:at] + patch[: max(0, len(content) - at)] + content[at + len(patch) :]


def flip_bit(draw: random.Random, content: bytes) -> bytes:
    at = some_place(draw, content)
    return overwrite(content, at, bytes([content[at] ^ 1 << draw.randrange(8)]))


def flip_bytes(draw: random.Random, content: bytes) -> bytes:
    for _ in range(draw.randrange(2, 20)):
        content = overwrite(content, some_place(draw, content), draw.randbytes(1))
    return content


def truncate(draw: random.Random, content: bytes) -> bytes:
    return content[: draw.randrange(1, len(content))]


def fill_block(draw: random.Random, content: bytes) -> bytes:
    size = draw.choice([4, 8, 64, 512, 4096])
    return overwrite(content, some_place(draw, content), draw.choice([b"\0", b"\xff", b" "]) * size)


def move_block(draw: random.Random, content: bytes) -> bytes:
    size, source = draw.choice([8, 64, 512]), draw.randrange(len(content))
    return overwrite(content, some_place(draw, content), content[source : source + size])


def lengthen(draw: random.Random, content: bytes) -> bytes:
    at = draw.choice([len(content), some_place(draw, content)])
    return content[:at] + draw.randbytes(draw.choice([1, 4, 100, 5000])) + content[at:]


def declare_huge(draw: random.Random, content: bytes) -> bytes:
    at = some_place(draw, content) // 4 * 4
    number, order = draw.choice(HUGE), draw.choice(["little", "big"])
    return overwrite(
        content, at, number.to_bytes(8, order)[-4 if number < 2**32 and order == "big" else 0 :][:8]
    )


def replace_head(draw: random.Random, content: bytes) -> bytes:
    head = draw.choice(HEADS)
    return overwrite(content, 208 if head == b"MAP " else 0, head)


def become_text(draw: random.Random, content: bytes) -> bytes:
    return draw.choice([b"", b"\n", b"n_frames = 10\n" * draw.randrange(1, 100), "méthode\n".encode() * 9])


def spoil_word(draw: random.Random, content: bytes) -> bytes:
    words = content.decode("latin-1").split(" ")
    words[draw.randrange(len(words))] = draw.choice(WORDS)
    return " ".join(words).encode("latin-1")


def drop_line(draw: random.Random, content: bytes) -> bytes:
    lines = content.splitlines(keepends=True)
    del lines[draw.randrange(len(lines))]
    return b"".join(lines)


ON_BYTES = [
    flip_bit,
    flip_bytes,
    truncate,
    fill_block,
    move_block,
    lengthen,
    declare_huge,
    replace_head,
    become_text,
]
ON_TEXT = [spoil_word, drop_line]


# Damage to what an HDF5 file or an archive says: sound containers with wrong content.


def spoiled_array(draw: random.Random, values: np.ndarray) -> np.ndarray:
    """An array of another shape or type, or with values that cannot be."""
    flat = values.reshape(-1)
    changed = values.copy()
    if changed.size and changed.dtype.kind in "iuf":
        bad = {"f": [np.nan, np.inf, -1e300], "i": [-1, -(2**31)]}.get(changed.dtype.kind, [0])
        with np.errstate(over="ignore"):
            changed.reshape(-1)[draw.randrange(changed.size)] = draw.choice(bad)
    return draw.choice(
        [
            changed,
            values[: len(values) // 2] if values.ndim else flat,
            np.concatenate([flat, flat]),
            flat,
            values[..., None],
            values.T,
            np.zeros((0, *values.shape[1:]), values.dtype),
            values.astype("S8") if values.dtype.kind in "iuf" else flat,
            values.astype(complex) if values.dtype.kind in "iuf" else flat,
            values.astype(values.dtype.newbyteorder(">")),
            np.array(draw.choice([0, -1, 2.5, np.nan])),
            np.zeros(values.shape, [("a", "i4"), ("b", "f8")]),
        ]
    )


def spoil_hdf5(draw: random.Random, path: Path) -> None:
    with h5py.File(path, "r+") as file:
        names: list[str] = []
        file.visit(names.append)
        name = draw.choice(sorted(names))
        item = file[name]
        action = draw.choice(["delete", "replace", "replace", "huge", "group", "varying", "attribute"])
        if action == "attribute":
            holder = draw.choice([file, item])
            keys = sorted(holder.attrs)
            value = draw.choice([b"other", -1, 2**40, np.nan, np.zeros((2, 2)), "text", h5py.Empty("f8")])
            holder.attrs[draw.choice(keys) if keys else "format"] = value
            return
        values = item[()] if isinstance(item, h5py.Dataset) and item.dtype.kind != "O" else np.zeros(3)
        del file[name]
        if action == "replace":
            file[name] = spoiled_array(draw, np.asarray(values))
        elif action == "huge":
            rest = np.shape(values)[1:]
            n_rows = draw.choice([2**31, 2**40, 2**60 // max(1, int(np.prod(rest))) // 16])
            chunks = (1, *(max(1, n) for n in rest))
            kind = np.asarray(values).dtype
            file.create_dataset(name, (n_rows, *(max(1, n) for n in rest)), kind, chunks=chunks)
        elif action == "group":
            file.create_group(name)
        elif action == "varying":
            rows = file.create_dataset(name, (40,), h5py.vlen_dtype(np.int32))
            rows[3] = np.arange(5)


def spoil_archive(draw: random.Random, path: Path) -> None:
    with np.load(path) as archive:
        arrays = dict(archive)
    name = draw.choice(sorted(arrays))
    if draw.random() < 0.2:
        del arrays[name]
    else:
        arrays[name] = spoiled_array(draw, arrays[name])
    buffer = io.BytesIO()
    draw.choice([np.savez, np.savez_compressed])(buffer, **arrays)
    path.write_bytes(buffer.getvalue())


def spoil_array_file(draw: random.Random, path: Path) -> None:
    np.save(path.open("wb"), spoiled_array(draw, np.load(path)))


def damage(sound: Path, seed: int, path: Path) -> str:
    """Put a damaged copy of the file at ``path``; the name of what was done."""
    draw = random.Random(zlib.crc32(f"{sound.name} {seed}".encode()))
    structured = {b"\x89HDF": spoil_hdf5, b"PK\x03\x04": spoil_archive, b"\x93NUM": spoil_array_file}
    shutil.copyfile(sound, path)
    content = sound.read_bytes()
    spoil = structured.get(content[:4])
    if spoil is not None and draw.random() < 0.35:
        with suppress(Exception):  # some combinations cannot be stored; the file is then as it was, or worse
            spoil(draw, path)
        return spoil.__name__
    harm = draw.choice(ON_BYTES if b"\0" in content else ON_BYTES + 2 * ON_TEXT)
    path.write_bytes(harm(draw, content))
    return harm.__name__


@pytest.fixture(scope="session", name="damage")
def damage_fixture() -> Callable[[Path, int, Path], str]:
    """``damage(sound, seed, path)`` puts a damaged copy at ``path`` and says what was done.

    Names of damage to bytes, which checksums must find, do not start with "spoil".
    """
    return damage
