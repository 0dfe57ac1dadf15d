"""The existing name that was probably meant by an unknown one."""

import difflib
import shlex
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from os import PathLike
from pathlib import Path

# Similarity to ask for: file names share endings and much of their beginnings, settings do not.
_ALIKE, _ALIKE_PATHS = 0.6, 0.75
# At most this many files of a folder are compared.
_MOST_FILES = 10_000


def nearest(name: str, known: Iterable[str], alike: float = _ALIKE) -> str:
    """The known name that resembles this one most; empty if none does.

    >>> nearest("iteratons", ["level", "iterations"]), nearest("colour", ["level"])
    ('iterations', '')
    """
    return next(iter(difflib.get_close_matches(name, list(known), n=1, cutoff=alike)), "")


def meant_instead(path: str | PathLike[str], otherwise: str) -> str:
    """A question that names the file or folder probably meant by a missing path; else ``otherwise``.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Path(folder, "frames.h5").touch()
    ...     question = meant_instead(Path(folder, "framse.h5"), "Check the path.")
    >>> question.endswith("frames.h5?"), meant_instead("nothing/like_it.h5", "Check the path.")
    (True, 'Check the path.')
    """
    asked = Path(path)
    with suppress(OSError):
        # The first part that is missing; what follows it may be there below what was meant.
        missing = [part for part in (asked, *asked.parents) if not part.exists()]
        if missing and missing[-1].parent.is_dir():
            first = missing[-1]
            names = [entry.name for entry in islice(first.parent.iterdir(), _MOST_FILES)]
            name = nearest(first.name, [name for name in sorted(names) if name[0] != "."], _ALIKE_PATHS)
            meant = first.with_name(name) / asked.relative_to(first) if name else None
            if meant is not None and meant.exists():
                return f"Did you mean {shlex.quote(str(meant))}?"
    return otherwise
