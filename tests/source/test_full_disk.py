"""A disk that fills up while frames are written: one sentence, the old file, and nothing else beside it."""

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orienteer
from orienteer.detector.square import square_detector
from orienteer.errors import FileError
from orienteer.source.opening import writer_for
from orienteer.source.patterns import Patterns, SparsePhotons

SHAPE = (16, 16)
SMALL_DISK_BYTES = 2 << 20
HDF5_NAMES = ("frames.h5", "frames.cxi", "frames.emc.h5", "frames.spinifel.h5")
NAMES = ("frames.h5", "frames.emc", "frames.npz", "frames.npy")
# Programs take longer than what they do.
IN_THIS_PROCESS = pytest.mark.slow(
    reason="every format of HDF5 meets a full disk in this process, every time"
)
FORMATS = (*NAMES, *(pytest.param(name, marks=IN_THIS_PROCESS) for name in HDF5_NAMES[1:]))
DETECTOR = square_detector(SHAPE, pixel_size_m=1e-3, distance_m=0.1)


def batch(number: int, n_frames: int = 40) -> Patterns:
    """Frames of noise, which compression cannot shrink much."""
    draw = np.random.default_rng(number)
    ids = np.arange(n_frames * number, n_frames * (number + 1))
    counts = draw.poisson(200.0, (n_frames, 256)).astype(np.int32)
    return Patterns(counts, ids, {"wavelength_A": np.full(n_frames, 2.0)})


def write(path: Path, n_batches: int = 3, **options: Any) -> None:
    with writer_for(path, detector=DETECTOR, metadata={"wavelength_A": 2.0}, **options) as writer:
        for number in range(n_batches):
            writer.append(batch(number))


@pytest.mark.parametrize("name", HDF5_NAMES)
def test_a_disk_full_after_any_number_of_bytes_leaves_the_old_file_and_nothing_else(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    pwrite = os.pwrite
    room = n_written = 1 << 40

    def limited(descriptor: int, data: Any, offset: int) -> int:
        nonlocal n_written
        fits = min(len(data), room - n_written)
        if fits <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        n_written += fits
        return pwrite(descriptor, data[:fits], offset)

    monkeypatch.setattr(os, "pwrite", limited)
    n_written = 0
    write(path)
    whole, old = n_written, path.read_bytes()
    for limit in (*range(0, whole, whole // 25), whole - 1):
        room, n_written = limit, 0
        with pytest.raises(FileError, match="could not be written: the disk is full") as caught:
            write(path)
        assert caught.value.message.startswith(f"{path}: ")
        assert path.read_bytes() == old
        assert list(tmp_path.iterdir()) == [path]


def orienteer_command(
    *arguments: object, largest_file: int | None = None
) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, in which no file may be longer than so many bytes."""

    def limit_files() -> None:
        if largest_file is not None:
            _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, most))

    command = [sys.executable, "-m", "orienteer", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=limit_files)


def check_said(told: subprocess.CompletedProcess[str], path: Path, sentence: str) -> None:
    assert told.returncode == 1, told.stderr
    error = next(line for line in told.stderr.splitlines() if line.startswith("Error:"))
    assert error.startswith(f"Error: {path}: could not be written{sentence}")
    assert "Traceback" not in told.stderr
    assert path.read_bytes() == b"the old file"
    assert list(path.parent.iterdir()) == [path]


def folder_with_old_file(tmp_path: Path, name: str) -> Path:
    path = tmp_path / "out" / name
    path.parent.mkdir()
    path.write_bytes(b"the old file")
    return path


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_that_may_not_be_that_large_is_one_sentence(name: str, tmp_path: Path) -> None:
    write(tmp_path / "in.h5", 40)
    path = folder_with_old_file(tmp_path, name)
    # NumPy gives no reason for its own files.
    sentence = "" if name.endswith(("npz", "npy")) else ": the disk is full, or no file may be that large"
    told = orienteer_command("convert", tmp_path / "in.h5", path, "--overwrite", largest_file=200_000)
    check_said(told, path, sentence)


def test_a_simulation_that_does_not_fit_is_one_sentence(tmp_path: Path) -> None:
    path = folder_with_old_file(tmp_path, "frames.h5")
    options = ("--frames", 3000, "--photons-per-frame", 3000, "--set", "detector.pixels=32", "--out", path)
    told = orienteer_command("simulate", "sphere", *options, "--overwrite", largest_file=300_000)
    check_said(told, path, ": the disk is full, or no file may be that large")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk in memory that is soon full."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK_BYTES}", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        mounted = False
    if not mounted:
        pytest.skip("needs the right to mount a small disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture(scope="module")
def many_frames(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of frames that is larger than the small disk in any format."""
    path = tmp_path_factory.mktemp("many") / "in.h5"
    with writer_for(path, detector=DETECTOR, metadata={"wavelength_A": 2.0}) as writer:
        for number in range(20):
            writer.append(batch(number, 1000))
    assert path.stat().st_size > 1.2 * SMALL_DISK_BYTES
    return path


@pytest.mark.parametrize("name", FORMATS)
def test_a_full_disk_is_one_sentence_and_exit_status_1(
    name: str, small_disk: Path, many_frames: Path
) -> None:
    path = small_disk / name
    path.write_bytes(b"the old file")
    check_said(orienteer_command("convert", many_frames, path, "--overwrite"), path, ": the disk is full")


def write_in_place_until_full(path: Path, **options: Any) -> int:
    """How many frames were committed when the disk was full."""
    n_committed = 0
    with (
        pytest.raises(FileError, match="could not be written: the disk is full") as caught,
        writer_for(path, detector=DETECTOR, commit_every_s=0.0, **options) as writer,
    ):
        for number in range(10_000):
            writer.append(batch(number, 100))
            n_committed = writer.n_committed  # type: ignore[attr-defined]
    assert caught.value.message.startswith(f"{path}: ")
    return n_committed


def check_frames(path: Path, n_frames: int) -> None:
    source = orienteer.open(path)
    assert len(source) == n_frames > 0
    expected = np.concatenate([batch(number, 100).dense() for number in range(n_frames // 100)])
    np.testing.assert_array_equal(source.read().dense(), expected)
    assert not source.is_live  # type: ignore[attr-defined]
    source.close()


@pytest.mark.parametrize("mode", ["live", "append"])
def test_a_file_that_grows_in_place_keeps_all_committed_frames_on_a_full_disk(
    mode: str, small_disk: Path
) -> None:
    path = small_disk / "frames.h5"
    n_frames = write_in_place_until_full(path, **{mode: True})
    check_frames(path, n_frames)
    assert list(small_disk.iterdir()) == [path]
    # Nothing of the room that was taken ahead is kept.
    assert path.stat().st_blocks * 512 <= path.stat().st_size + 4096


def test_a_file_that_grows_in_place_stops_at_the_largest_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "frames.h5"
    write(path, 2, live=True)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (2_000_000, 2_000_000))
    with pytest.raises(FileError, match="no file may be that large"):
        write(path, 40, live=True)
    assert list(tmp_path.iterdir()) == [path]
    assert len(orienteer.open(path)) == 0


def test_room_taken_ahead_is_given_back(tmp_path: Path) -> None:
    write(tmp_path / "whole.h5", commit_every_s=0.0)
    write(tmp_path / "live.h5", live=True, commit_every_s=0.0)
    live, whole = (tmp_path / name for name in ("live.h5", "whole.h5"))
    assert live.stat().st_size < 3 * whole.stat().st_size
    assert live.stat().st_blocks * 512 < live.stat().st_size + 64 * 1024


def test_an_interrupted_writer_leaves_nothing(tmp_path: Path) -> None:
    for name in HDF5_NAMES:
        with (
            pytest.raises(KeyboardInterrupt),
            writer_for(tmp_path / name, detector=DETECTOR, metadata={"wavelength_A": 2.0}) as writer,
        ):
            frames = batch(0)
            assert not isinstance(frames.frames, SparsePhotons)
            writer.append(frames)
            raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
