"""Files of a run are written beside its steps, and nothing of that is lost or kept to itself."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import orienteer.run.session as session_module
from orienteer.errors import FileError
from orienteer.run.checkpoint import load_checkpoint, save_checkpoint
from orienteer.run.run import Run
from orienteer.run.saving_beside import SavingBeside, can_be_copied, copied


def test_what_is_written_comes_in_order_and_beside() -> None:
    may_go_on, written = threading.Event(), []

    def slow() -> None:
        may_go_on.wait(10)
        written.append("first")

    beside = SavingBeside()
    beside.begin([slow, lambda: written.append("second")])
    assert beside.is_busy
    assert not written
    may_go_on.set()
    beside.begin([lambda: written.append("third")])  # waits for the two
    beside.wait()
    assert written == ["first", "second", "third"]
    assert not beside.is_busy


def test_what_went_wrong_is_raised_once_by_whoever_waits() -> None:
    def fail() -> None:
        raise FileError("checkpoint.h5", "cannot be written.")

    beside = SavingBeside()
    beside.begin([fail])
    beside.end()
    with pytest.raises(FileError, match="cannot be written"):
        beside.check()
    beside.wait()


def test_copies_stay_as_they_are() -> None:
    state = {"models": np.zeros(3), "iteration": 4}
    kept = copied(state)
    state["models"][0] = 1.0
    assert not kept["models"].any()
    assert kept["iteration"] == 4
    assert can_be_copied(state)
    assert not can_be_copied({"models": np.broadcast_to(0.0, (1 << 26,))})


def test_a_step_does_not_wait_for_the_disk(
    runs: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The first checkpoint is still being written when the second step is done, and is whole in the end."""
    may_go_on, begun = threading.Event(), threading.Event()

    def held_up(*arguments: Any) -> str:
        begun.set()
        assert may_go_on.wait(30)
        return save_checkpoint(*arguments)

    monkeypatch.setattr(session_module, "save_checkpoint", held_up)
    run: Run = runs.make(tmp_path / "run")
    steps = run.iterate()
    next(steps)
    assert begun.wait(10)
    second = next(steps)
    assert second.iteration == 2
    assert not (run.path / "checkpoint.h5").exists()
    may_go_on.set()
    steps.close()
    checkpoint, note = load_checkpoint(run.path, run.described["run_id"])
    assert checkpoint is not None
    assert checkpoint.iteration == 2
    assert not note


def test_a_checkpoint_that_fails_beside_ends_the_run_a_step_later(
    runs: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run: Run = runs.make(tmp_path / "run")

    def fail(*_: Any) -> str:
        raise FileError(run.path / "checkpoint.h5", "could not be written: the disk is full.")

    monkeypatch.setattr(session_module, "save_checkpoint", fail)
    with pytest.raises(FileError, match="disk is full") as caught:
        for _ in run.iterate():
            pass
    assert "no iteration was kept yet" in caught.value.hint.lower()


def test_a_run_that_is_over_is_shown_while_its_last_files_are_written(
    runs: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run: Run = runs.make(tmp_path / "run", steps=3)
    is_shown = threading.Event()

    def after_the_show(directory: Path, checkpoint: Any, *others: Any) -> str:
        assert not checkpoint.finished or is_shown.wait(30)
        return save_checkpoint(directory, checkpoint, *others)

    def show(method: Any) -> None:
        assert method.finished
        assert not run.finished
        is_shown.set()

    monkeypatch.setattr(session_module, "save_checkpoint", after_the_show)
    run.when_finished = show
    assert [step.iteration for step in run.iterate()] == [1, 2, 3]
    assert is_shown.is_set()
    assert run.finished
    checkpoint, _ = load_checkpoint(run.path, run.described["run_id"])
    assert checkpoint is not None
    assert checkpoint.finished
    assert len(run.volumes()) == 1
