"""FileCache: a bounded cache of results made from files, valid as long as the files do not change."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
Stamp = tuple[int, int, int] | None


def stamp(path: str | os.PathLike[str]) -> Stamp:
    """Time (ns), size and inode number of a file, which differ when its content does; None: no such file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


class FileCache:
    """The results of at most ``most`` questions; the least recently used is dropped first.

    most : how many results are kept; the callers keep each of them small.
    """

    def __init__(self, most: int = 256) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, tuple[tuple[Stamp, ...], Any]] = OrderedDict()
        self._guard = threading.Lock()

    def get(self, question: Hashable, files: Sequence[Path], make: Callable[[], T]) -> T:
        """The answer, made again if one of the files has changed since; errors are not kept.

        The files are checked before the answer is made: if one changes meanwhile, the next call repeats it.
        """
        now = tuple(stamp(file) for file in files)
        with self._guard:
            found = self._kept.get(question)
            if found is not None and found[0] == now:
                self._kept.move_to_end(question)
                answer: T = found[1]
                return answer
        answer = make()
        with self._guard:
            self._kept[question] = (now, answer)
            self._kept.move_to_end(question)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return answer

    def __len__(self) -> int:
        return len(self._kept)
