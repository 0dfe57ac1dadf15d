"""A killed writer leaves the old file or none; one that writes in place leaves every committed frame."""

import multiprocessing
import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orienteer
from orienteer.detector.square import square_detector
from orienteer.source.opening import format_names, writer_for
from orienteer.source.orienteer_hdf5 import OrienteerHdf5Source
from orienteer.source.patterns import Patterns

SHAPE, BATCH = (20, 20), 50
OTHER_MOMENTS = pytest.mark.slow(reason="writers are killed 24 times in all, at other moments, every time")


def frames(ids: np.ndarray) -> np.ndarray:
    """Frame d follows from its number, so that any beginning of a file can be checked."""
    return ((ids[:, None] * 7 + np.arange(400)) % 11 == 0).astype(np.int32)


def write(path: Path, name: str, mode: str, first: int, safe: Connection) -> None:
    """Write frames for ever, and send how many are safe against being killed."""
    options: dict[str, Any] = {} if mode == "whole" else {mode: True, "commit_every_s": 0.0}
    detector = square_detector(SHAPE, pixel_size_m=1e-3, distance_m=0.1)
    with writer_for(path, name, detector=detector, metadata={"wavelength_A": 2.0}, **options) as writer:
        while True:
            ids = np.arange(first, first + BATCH)
            dense = Patterns(frames(ids), ids)
            writer.append(Patterns(dense.sparse(), ids) if name == "Orienteer" else dense)
            safe.send(getattr(writer, "n_committed", 0))
            first += BATCH


@contextmanager
def writer_process(path: Path, name: str, mode: str, first: int = 0) -> Iterator[Connection]:
    """A process that writes; it is killed when the block ends."""
    fork = multiprocessing.get_context("fork")
    receive, send = fork.Pipe(duplex=False)
    child = fork.Process(target=write, args=(path, name, mode, first, send))
    child.start()
    send.close()
    try:
        yield receive
    finally:
        child.kill()
        child.join()
        receive.close()
    assert child.exitcode == -signal.SIGKILL


def write_and_be_killed(path: Path, name: str, mode: str, draw: random.Random, first: int = 0) -> int:
    """How many frames the writer knew to be safe when it was killed, at a random moment."""
    with writer_process(path, name, mode, first) as safe:
        n_safe: int = safe.recv()
        end = time.monotonic() + draw.uniform(0, 0.15)
        while (left := end - time.monotonic()) > 0:
            if safe.poll(left):
                n_safe = safe.recv()
    return n_safe


@pytest.mark.parametrize("name", format_names())
def test_the_old_file_stays_or_none_is_there(name: str, tmp_path: Path) -> None:
    draw = random.Random(name)
    path = tmp_path / "frames"
    for _ in range(3):
        write_and_be_killed(path, name, "whole", draw)
        assert not path.exists()
    path.write_bytes(b"the old file")
    for _ in range(3):
        write_and_be_killed(path, name, "whole", draw)
        assert path.read_bytes() == b"the old file"
    # What is left under other names is in nobody's way: a new file can be written and read.
    detector = square_detector(SHAPE, pixel_size_m=1e-3, distance_m=0.1)
    with writer_for(path, name, detector=detector, metadata={"wavelength_A": 2.0}) as writer:
        writer.append(Patterns(frames(np.arange(9))))
    np.testing.assert_array_equal(orienteer.open(path).read().dense(), frames(np.arange(9)))


@pytest.mark.parametrize(
    "seed", [0, 1, 2, *(pytest.param(seed, marks=OTHER_MOMENTS) for seed in range(3, 8))]
)
@pytest.mark.parametrize("mode", ["live", "append"])
def test_every_committed_frame_survives_and_more_can_be_appended(
    mode: str, seed: int, tmp_path: Path
) -> None:
    draw = random.Random(f"{mode} {seed}")
    path = tmp_path / "frames.h5"
    n_frames = 0
    for _ in range(4):
        n_safe = write_and_be_killed(path, "Orienteer", mode if n_frames == 0 else "append", draw, n_frames)
        with OrienteerHdf5Source(path) as source:
            assert len(source) >= n_safe >= n_frames
            assert source.is_live  # the marks of the dead writer
            n_frames = len(source)
            read = source.read()
        np.testing.assert_array_equal(read.event_id, np.arange(n_frames))
        np.testing.assert_array_equal(read.dense(), frames(np.arange(n_frames)))
    more = np.arange(n_frames, n_frames + 5)
    with writer_for(path, append=True) as writer:
        writer.append(Patterns(frames(more), more))
    with OrienteerHdf5Source(path) as source:
        assert not source.is_live
        np.testing.assert_array_equal(source.read().dense(), frames(np.arange(n_frames + 5)))


def test_readers_see_whole_frames_while_another_process_writes(tmp_path: Path) -> None:
    path = tmp_path / "frames.h5"
    with writer_process(path, "Orienteer", "live") as safe:
        n_safe = safe.recv()
        lengths = []
        with OrienteerHdf5Source(path) as source:
            end = time.monotonic() + 1.5
            while time.monotonic() < end:
                while safe.poll():  # keep the pipe from filling
                    n_safe = safe.recv()
                lengths.append(source.refresh())
                assert lengths[-1] >= n_safe
                tail = np.arange(max(0, lengths[-1] - 120), lengths[-1])
                np.testing.assert_array_equal(source.read(tail).dense(), frames(tail))
    assert lengths == sorted(lengths)
    assert lengths[-1] > lengths[0]
