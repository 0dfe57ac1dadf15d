"""One GPU for several processes at once: CUDA's multi-process service, for a program and its children.

Without it, processes take turns on a GPU, a few milliseconds each.  One that waits for a small result then
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
    """Inside the block, processes that begin to use a GPU share it; yields whether they do.

    This process shares it, too, if it has not used the GPU before.  A service that somebody else has
    started, and that the environment names, is used instead.
    """
    if os.environ.get(_PLACES[0]):
        yield True
        return
    program = shutil.which(_CONTROL)
    if program is None:
        yield False
        return
    place = tempfile.mkdtemp(prefix="orienteer-mps-")
    own = dict.fromkeys(_PLACES, place)
    if not _started(program, own):
        shutil.rmtree(place, ignore_errors=True)
        yield False
        return
    os.environ.update(own)
    try:
        yield True
    finally:
        for name in own:
            os.environ.pop(name, None)
        _end(program, own, place)


def _started(program: str, places: dict[str, str]) -> bool:
    """Whether the control program has started the service."""
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            [program, "-d"],
            env={**os.environ, **places},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_PATIENCE_S,
        )
        return done.returncode == 0
    return False


def _end(program: str, places: dict[str, str], place: str) -> None:
    """Let the service end with the last process that uses it; this may be one, so do not wait for that."""
    with suppress(OSError):
        subprocess.Popen(
            ["sh", "-c", 'echo quit | "$0"; rm -rf "$1"', program, place],
            env={**os.environ, **places},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
