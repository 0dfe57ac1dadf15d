"""Which text the name of a run or sample, or a note, may have, as it is shown and put into paths."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from orienteer.errors import SettingsError

# A letter or number comes first, so that a name is never an option of a command, a hidden file or "..".
_NAME = re.compile(r"\w[\w .,:+@=()-]{0,199}")
_UNFIT = re.compile(r"[^\w .,:+@=()-]")
MOST_OF_A_NAME = 200
MOST_OF_A_NOTE = 10_000


def checked_name(name: str, what: str = "run") -> str:
    """The name; raises SettingsError if it is not allowed.

    >>> checked_name("r0042")
    'r0042'
    """
    if not _NAME.fullmatch(name) or name != name.strip():
        raise SettingsError(
            f"'{printable(name)[:60]}' is no name for a {what}.",
            "Names begin with a letter or number; spaces and . , : + @ = ( ) - _ may be used after that.",
        )
    return name


def name_of(path_stem: str) -> str:
    """A name made from the name of a file.

    >>> name_of("-r0042*")
    'r0042_'
    """
    return _UNFIT.sub("_", path_stem).lstrip(" .,:+@=()-")[:MOST_OF_A_NAME].rstrip() or "run"


def names_for(path: Path) -> Iterator[str]:
    """Names to try for the run at a path: its own, then with that of its folder, then with numbers.

    >>> from itertools import islice
    >>> list(islice(names_for(Path("night/r1.h5")), 3))
    ['r1', 'night r1', 'r1 (2)']
    """
    stem = name_of(path.name if path.is_dir() else path.stem)
    yield stem
    yield name_of(f"{path.parent.name} {stem}")
    for number in count(2):
        end = f" ({number})"
        yield stem[: MOST_OF_A_NAME - len(end)] + end


def checked_note(text: str) -> str:
    """The note without control characters; raises SettingsError if it is empty or too long."""
    text = "".join(letter for letter in text if letter.isprintable() or letter in "\n\t").strip()
    if not text or len(text) > MOST_OF_A_NOTE:
        raise SettingsError(
            f"a note has between 1 and {MOST_OF_A_NOTE} characters.", "Split a long text into several notes."
        )
    return text


def printable(text: str) -> str:
    """The text on one line, without control characters."""
    return "".join(letter for letter in text if letter.isprintable())
