"""A disk that fills up stops a run with one sentence; with room again, the run goes on as if it had not."""

import errno
import multiprocessing
import os
import resource
import signal
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from orienteer.errors import FileError
from orienteer.run import events
from orienteer.run.checkpoint import LAST, PREVIOUS, Checkpoint, read_checkpoint, save_checkpoint

SETTINGS: dict[str, Any] = {"steps": 6, "edge": 12}


def carry_out_with_limit(
    runs: SimpleNamespace, path: Path, limit: int, settings: Any, said: Connection
) -> None:
    """Work on the run while no file may be larger than so many bytes; send what went wrong."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    try:
        for _ in runs.make(path, **settings).iterate():
            pass
        said.send(None)
    except FileError as error:
        said.send((error.message, error.hint))
    except BaseException as error:
        said.send(repr(error))


@pytest.mark.parametrize(
    ("limit", "dragonfly"),
    [(n, False) for n in (100, 700, 1_000, 3_000, 5_000, 7_000, 8_200)]
    + [(n, True) for n in (9_000, 20_000)],
)
def test_a_limit_on_the_size_of_files_is_a_sentence_and_the_run_goes_on(
    limit: int, dragonfly: bool, runs: SimpleNamespace, uninterrupted: Any, tmp_path: Path
) -> None:
    settings = {**SETTINGS, "dragonfly_output": dragonfly}
    wanted = uninterrupted(**settings)
    path = tmp_path / "run"
    fork = multiprocessing.get_context("fork")
    receive, send = fork.Pipe(duplex=False)
    child = fork.Process(target=carry_out_with_limit, args=(runs, path, limit, settings, send))
    child.start()
    said = receive.recv()
    child.join()
    assert child.exitcode == 0
    message, hint = said
    assert "the disk is full" in message
    assert str(path) in message
    assert "\n" not in message
    assert "ulimit" in hint
    assert not list(path.rglob("*.part"))
    if (path / "run.json").exists():
        assert "The same command resumes the run" in hint
    for _ in runs.make(path, **settings).iterate():
        pass
    assert runs.outcome(path) == wanted


def test_a_line_that_does_not_fit_leaves_the_log_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = events.EventLog(tmp_path / "events.jsonl")
    log.append("started", iteration=0)
    before = log.path.read_bytes()
    write = os.write

    def nearly_full(descriptor: int, data: Any) -> int:
        if len(data) < 20:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data[:20])

    monkeypatch.setattr(events.os, "write", nearly_full)
    with pytest.raises(FileError, match="the disk is full"):
        log.append("stopped", reason="x" * 50)
    assert log.path.read_bytes() == before


def test_a_checkpoint_that_does_not_fit_leaves_the_last_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for iteration in (1, 2):
        save_checkpoint(tmp_path, Checkpoint("a", iteration, False, "", {"x": iteration}))

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(FileError, match="the disk is full"):
        save_checkpoint(tmp_path, Checkpoint("a", 3, False, "", {"x": 3}))
    assert read_checkpoint(tmp_path / LAST).iteration == 2
    assert read_checkpoint(tmp_path / PREVIOUS).iteration == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == [LAST, PREVIOUS]
