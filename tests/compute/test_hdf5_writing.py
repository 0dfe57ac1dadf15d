"""New HDF5 files: a failure at any byte is one error, a signal waits, and nothing is left behind."""

import errno
import os
import signal
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from orienteer.compute.hdf5_writing import NeverFailingFile, new_hdf5, signals_wait
from orienteer.errors import FileError


def fill(path: Path) -> None:
    """Chunks, indices of chunks, whole arrays and attributes, so that the library reads back."""
    numbers = np.random.default_rng(4).integers(0, 1000, (40, 256))
    with new_hdf5(path) as file:
        rows = file.create_dataset(
            "rows", (0, 256), "i8", maxshape=(None, 256), chunks=(1, 256), fletcher32=True
        )
        for first in range(0, 40, 10):
            rows.resize(first + 10, axis=0)
            rows[first : first + 10] = numbers[first : first + 10]
            file.flush()
        file["whole"] = numbers
        for group in range(20):
            file.create_group(f"group_{group}").attrs["text"] = "x" * 100


class FullDisk:
    """``os.pwrite`` on a disk with room for so many bytes: it takes what fits, then refuses."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, room: float) -> None:
        self.room = room
        self.written = 0
        self._pwrite = os.pwrite
        monkeypatch.setattr(os, "pwrite", self)

    def __call__(self, descriptor: int, data: Any, offset: int) -> int:
        fits = int(min(len(data), self.room - self.written))
        if fits == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.written += fits
        return self._pwrite(descriptor, data[:fits], offset)


def test_a_disk_that_is_full_after_any_number_of_bytes_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file.h5"
    with monkeypatch.context() as patched:
        disk = FullDisk(patched, np.inf)
        fill(path)
    old = path.read_bytes()
    steps = [*range(0, disk.written, 499), disk.written - 1]
    assert len(steps) > 200
    for room in steps:
        with monkeypatch.context() as patched, pytest.raises(FileError) as caught:
            FullDisk(patched, room)
            fill(path)
        assert "file.h5: could not be written: the disk is full" in caught.value.message
        assert "\n" not in caught.value.message
        assert list(tmp_path.iterdir()) == [path]
        assert path.read_bytes() == old
    with monkeypatch.context() as patched:
        FullDisk(patched, disk.written)
        fill(path)


def test_a_file_that_cannot_be_made_longer_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: int) -> None:
        raise OSError(errno.EFBIG, "File too large")

    monkeypatch.setattr(os, "ftruncate", refuse)
    with pytest.raises(FileError, match=r"file\.h5: .*the disk is full, or no file may be that large"):
        fill(tmp_path / "file.h5")
    assert list(tmp_path.iterdir()) == []


def test_what_is_written_is_what_h5py_reads(tmp_path: Path) -> None:
    fill(tmp_path / "file.h5")
    with h5py.File(tmp_path / "file.h5") as file:
        np.testing.assert_array_equal(file["rows"], file["whole"])
        assert file["group_7"].attrs["text"] == "x" * 100


def test_bytes_written_after_a_failure_are_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(1)
    file = NeverFailingFile(tmp_path / "bytes")
    FullDisk(monkeypatch, 20_000)
    expected = bytearray(60_000)
    for _ in range(60):
        start, length = int(draw.integers(0, 50_000)), int(draw.integers(1, 10_000))
        data = draw.bytes(length)
        expected[start : start + length] = data
        file.seek(start)
        assert file.write(data) == length
        file.seek(0)
        assert file.read(60_000) == bytes(expected)
    with pytest.raises(OSError, match="No space left"):
        file.raise_failure()
    file.close()


@pytest.mark.parametrize("at_write", [1, 5, 20, 30])
def test_an_interrupt_while_the_library_writes_waits_until_it_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_write: int
) -> None:
    n_written = 0
    pwrite = os.pwrite

    def interrupted(*arguments: Any) -> int:
        nonlocal n_written
        n_written += 1
        if n_written == at_write:
            signal.raise_signal(signal.SIGINT)
        return pwrite(*arguments)

    monkeypatch.setattr(os, "pwrite", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fill(tmp_path / "file.h5")
    assert n_written > 30
    assert list(tmp_path.iterdir()) == []


def test_signals_come_late_but_all_and_their_handlers_stay() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: heard.append(number))
    try:
        handler = signal.getsignal(signal.SIGUSR1)
        with signals_wait(), signals_wait():
            signal.raise_signal(signal.SIGUSR1)
            assert heard == []
        assert heard == [signal.SIGUSR1]
        assert signal.getsignal(signal.SIGUSR1) is handler
    finally:
        signal.signal(signal.SIGUSR1, before)
