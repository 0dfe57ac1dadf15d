"""One card for several processes at once: CUDA's multi-process service, for one program and what it starts.

Without it, processes take turns on a card, a few milliseconds each.  One that waits for a small result then
waits for the turns of all others, and a reconstruction asks for some fifty such results in every iteration.
With it, kernels of all of them run side by side.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_CONTROL = "nvidia-cuda-mps-control"
_PLACES = ("CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY")
_PATIENCE_S = 20.0


@contextmanager
def shared_card() -> Iterator[bool]:
    """Inside the block, processes that begin to use a card share it; tells whether it is so.

    This process shares it, too, if it has not used the card before.  A service that somebody else has
    started, and that the environment names, is taken as it is.
    """
    if os.environ.get(_PLACES[0]):
        yield True
        return
    program = shutil.which(_CONTROL)
    if program is None:
        yield False
        return
    with tempfile.TemporaryDirectory(prefix="orienteer-mps-") as place:
        own = dict.fromkeys(_PLACES, place)
        if not _told(program, own, "-d"):
            yield False
            return
        os.environ.update(own)
        try:
            yield True
        finally:
            for name in own:
                os.environ.pop(name, None)
            _told(program, own, word="quit")


def _told(program: str, places: dict[str, str], *arguments: str, word: str = "") -> bool:
    """Whether the control program has done what it was told."""
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            [program, *arguments],
            input=word.encode(),
            env={**os.environ, **places},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_PATIENCE_S,
        )
        return done.returncode == 0
    return False
