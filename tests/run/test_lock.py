"""The lock: one process at a time, and nobody is kept out by the dead."""

import errno
import json
import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from orienteer.errors import FileError
from orienteer.run import lock
from orienteer.run.lock import Holder, RunLock, lock_holder


def hold(directory: Path, held: Connection) -> None:
    with RunLock(directory):
        held.send(True)
        time.sleep(60)


@contextmanager
def another_process(directory: Path) -> Iterator[Any]:
    """A process that holds the lock; it is killed when the block ends."""
    fork = multiprocessing.get_context("fork")
    receive, send = fork.Pipe(duplex=False)
    child = fork.Process(target=hold, args=(directory, send))
    child.start()
    try:
        assert receive.recv()
        yield child
    finally:
        child.kill()
        child.join()


def refuse(*_: Any) -> None:
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))


def leave_behind(directory: Path, holder: Holder) -> None:
    (directory / lock.NAME).write_text(json.dumps(holder.__dict__))


@pytest.mark.parametrize("has_locks", [True, False])
def test_two_processes_do_not_work_on_one_run(
    has_locks: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_locks:
        monkeypatch.setattr(lock.fcntl, "flock", refuse)
    with another_process(tmp_path) as child:
        with pytest.raises(FileError, match=f"process {child.pid} on .* is already working") as caught:
            RunLock(tmp_path).__enter__()
        assert "another folder" in caught.value.hint
        holder = lock_holder(tmp_path)
        assert holder is not None
        assert holder.pid == child.pid
    # Killed, it left its file behind, which means nothing.
    assert (tmp_path / lock.NAME).exists()
    assert lock_holder(tmp_path) is None
    with RunLock(tmp_path):
        assert lock_holder(tmp_path) == Holder.me()
    assert not (tmp_path / lock.NAME).exists()


def test_a_run_that_is_under_way_elsewhere_is_refused(runs: SimpleNamespace, tmp_path: Path) -> None:
    path = tmp_path / "run"
    next(runs.make(path, steps=9).iterate())
    with another_process(path):
        with pytest.raises(FileError, match="is already working on this run"):
            next(runs.make(path, steps=9).iterate())
        with pytest.raises(FileError, match="is already working on this run"):
            runs.make(path, steps=9, restart=True)
        assert "running" in repr(runs.make(path, steps=9))
    assert next(runs.make(path, steps=9).iterate()).iteration == 2


def test_the_same_process_is_told_that_it_is_itself(tmp_path: Path) -> None:
    with RunLock(tmp_path), pytest.raises(FileError, match="this very process"), RunLock(tmp_path):
        pass


def test_a_lock_of_another_machine_counts_while_it_is_renewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "WATCH_S", 0.5)
    elsewhere = Holder("another-machine", 1, "7")
    leave_behind(tmp_path, elsewhere)
    stop = threading.Event()

    def renew() -> None:
        while not stop.wait(0.1):
            os.utime(tmp_path / lock.NAME)

    thread = threading.Thread(target=renew)
    thread.start()
    try:
        with pytest.raises(FileError, match="process 1 on another-machine is already working"):
            RunLock(tmp_path).__enter__()
        assert lock_holder(tmp_path) == elsewhere
    finally:
        stop.set()
        thread.join()
    began = time.monotonic()
    with RunLock(tmp_path):
        assert time.monotonic() - began >= 0.5
        assert lock_holder(tmp_path) == Holder.me()


def test_a_lock_is_renewed_while_it_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "RENEW_EVERY_S", 0.05)
    with RunLock(tmp_path) as held:
        os.utime(held.path, (0, 0))
        end = time.monotonic() + 5
        while held.path.stat().st_mtime == 0:
            assert time.monotonic() < end
            time.sleep(0.02)


def test_a_number_that_another_process_has_now_is_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock.fcntl, "flock", refuse)
    leave_behind(tmp_path, Holder(Holder.me().host, os.getppid(), "an earlier time"))
    with RunLock(tmp_path):
        pass


@pytest.mark.parametrize("content", ["", "{", "[]", '{"host": 1}'])
def test_a_lock_file_of_nonsense_is_nobodys(content: str, tmp_path: Path) -> None:
    (tmp_path / lock.NAME).write_text(content)
    assert lock_holder(tmp_path) is None
    with RunLock(tmp_path):
        pass


def test_many_processes_at_once_give_one_holder_at_a_time(tmp_path: Path) -> None:
    """Each adds 1 to a number by reading and writing it, which only works alone."""
    number = tmp_path / "number"
    number.write_text("0")

    def add() -> None:
        done = 0
        while done < 20:
            try:
                with RunLock(tmp_path):
                    before = int(number.read_text())
                    time.sleep(0.0005)
                    number.write_text(str(before + 1))
                    done += 1
            except FileError:
                time.sleep(0.001)

    fork = multiprocessing.get_context("fork")
    children = [fork.Process(target=add) for _ in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0] * 4
    assert number.read_text() == "80"
