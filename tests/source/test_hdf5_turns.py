"""A live writer and its readers take turns, and neither waits long for one that has stopped."""

import threading
import time
from pathlib import Path

import numpy as np
import pytest

from orienteer.source.hdf5_turns import WriterTurns, reader_turn
from orienteer.source.opening import writer_for
from orienteer.source.orienteer_hdf5 import OrienteerHdf5Source
from orienteer.source.patterns import Patterns


def test_a_reader_waits_for_the_end_of_a_change_and_readers_do_not_wait_for_each_other(
    tmp_path: Path,
) -> None:
    path, said = tmp_path / "frames.h5", []
    turns = WriterTurns(path)

    def read() -> None:
        with reader_turn(path):
            said.append("read")
            both.wait(60)  # passes only when both are inside

    both = threading.Barrier(2)
    readers = [threading.Thread(target=read) for _ in range(2)]
    with turns.take():
        for reader in readers:
            reader.start()
        with turns.take():
            time.sleep(0.02)
        time.sleep(0.03)
        said.append("changed")
    for reader in readers:
        reader.join()
    assert said == ["changed", "read", "read"]
    assert not both.broken
    turns.close()
    assert list(tmp_path.iterdir()) == []


def test_a_writer_waits_for_a_reader_but_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orienteer.source.hdf5_turns._WRITER_WAITS_S", 0.1)
    path = tmp_path / "frames.h5"
    turns = WriterTurns(path)
    with reader_turn(path):
        began = time.monotonic()
        with turns.take():
            waited = time.monotonic() - began
    assert 0.1 <= waited < 30
    monkeypatch.setattr("orienteer.source.hdf5_turns._WRITER_WAITS_S", 600)
    began = time.monotonic()
    with turns.take():
        assert time.monotonic() - began < 30
    turns.close()


def test_without_a_writer_nobody_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orienteer.source.hdf5_turns._READER_WAITS_S", 600)
    began = time.monotonic()
    with reader_turn(tmp_path / "frames.h5"):
        pass
    assert time.monotonic() - began < 30
    assert list(tmp_path.iterdir()) == []


def test_readers_in_their_turn_look_again_once_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once where the writer has moved what they knew; then it stays."""
    monkeypatch.setattr("orienteer.source.orienteer_hdf5._LIVE_ATTEMPTS", 2)
    monkeypatch.setattr("orienteer.source.hdf5_turns._WRITER_WAITS_S", 20.0)
    monkeypatch.setattr("orienteer.source.hdf5_turns._READER_WAITS_S", 20.0)
    path = tmp_path / "frames.h5"
    frames = np.random.default_rng(1).poisson(0.2, (400, 900))
    written = threading.Event()

    def write() -> None:
        with writer_for(path, live=True, commit_every_s=0.0, frame_shape=(30, 30)) as writer:
            for first in range(0, 400, 8):
                ids = np.arange(first, first + 8)
                writer.append(Patterns(Patterns(frames[ids]).sparse(), ids))
                written.set()

    writing = threading.Thread(target=write)
    writing.start()
    written.wait(10)
    with OrienteerHdf5Source(path) as source:
        while writing.is_alive():
            n = source.refresh()
            np.testing.assert_array_equal(source.read(slice(max(0, n - 30), n)).dense(), frames[:n][-30:])
    writing.join()
    assert sorted(item.name for item in tmp_path.iterdir()) == ["frames.h5"]


def test_an_error_while_nobody_writes_keeps_no_other(tmp_path: Path) -> None:
    """An error that is kept keeps those that it came after, and all that they have open."""
    with pytest.raises(ValueError, match="damaged") as raised, reader_turn(tmp_path / "frames.h5"):
        raise ValueError("damaged")
    assert raised.value.__context__ is None
