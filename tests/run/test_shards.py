"""Checkpoints that several ranks write together; here ranks are threads, so that every case is quick."""

import errno
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orienteer.errors import FileError
from orienteer.run import checkpoint as checkpoints
from orienteer.run import shards
from orienteer.run.checkpoint import (
    LAST,
    PREVIOUS,
    Checkpoint,
    load_checkpoint,
    read_checkpoint,
    save_checkpoint,
)
from orienteer.run.crew import Crew
from orienteer.run.shards import FOLDER


class Threads(Crew):
    """A rank that is a thread; all ranks share a table and a barrier."""

    def __init__(self, rank: int, table: list[Any], barrier: threading.Barrier) -> None:
        self._table, self._barrier = table, barrier
        self.rank, self.size, self.host = rank, len(table), "here"
        self.members = [("here", rank) for rank in range(self.size)]

    def everyone(self, value: Any) -> list[Any]:
        self._table[self.rank] = value
        self._barrier.wait(10)
        found = list(self._table)
        self._barrier.wait(10)
        return found

    def from_leader(self, value: Any) -> Any:
        return self.everyone(value)[0]

    def by_leader(self, work: Callable[[], Any]) -> Any:
        found = self.from_leader(attempt(work) if self.leads else None)
        if isinstance(found, Exception):
            raise found
        return found

    def together(self, work: Callable[[], Any]) -> Any:
        found = self.everyone(attempt(work))
        for each in found:
            if isinstance(each, Exception):
                raise each
        return found[self.rank]


def attempt(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except Exception as error:
        return error


def on_ranks(n: int, work: Callable[[Crew], Any]) -> list[Any]:
    """What each of n ranks makes of it; errors included."""
    table: list[Any] = [None] * n
    barrier = threading.Barrier(n)
    found: list[Any] = [None] * n

    def one(rank: int) -> None:
        found[rank] = attempt(lambda: work(Threads(rank, table, barrier)))

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return found


STATE: dict[str, Any] = {
    "models": np.random.default_rng(1).random((1, 7, 7, 7), dtype=np.float32),
    "rows": np.random.default_rng(2).integers(0, 2**62, (211, 3)),
    "small": np.arange(3),
    "nothing": np.zeros((0, 4)),
    "iteration": 3,
    "stage": 1,
    "spread": 0.3,
    "plan": "2 frames",
}


def save(folder: Path, n: int, iteration: int = 3, **other: Any) -> list[Any]:
    def work(crew: Crew) -> str:
        # What only the last rank has different.
        state = STATE | (other if crew.rank == n - 1 else {})
        return save_checkpoint(folder, Checkpoint("id", iteration, False, "", state), crew)

    return on_ranks(n, work)


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "SHARD_BYTES", 1000)


@pytest.mark.parametrize(("n", "n_files"), [(1, 0), (2, 1), (3, 2), (5, 4), (9, 6)])
def test_every_bit_comes_back_from_any_number_of_shards(n: int, n_files: int, tmp_path: Path) -> None:
    assert save(tmp_path, n) == [""] * n
    folder = tmp_path / FOLDER
    assert (len(list(folder.iterdir())) if folder.exists() else 0) == n_files
    state = read_checkpoint(tmp_path / LAST).state
    assert set(state) == set(STATE)
    for name, value in STATE.items():
        if isinstance(value, np.ndarray):
            found: Any = state[name]
            assert (found.dtype, found.shape, found.tobytes()) == (value.dtype, value.shape, value.tobytes())


def test_shards_of_two_checkpoints_are_kept_and_older_ones_are_not(tmp_path: Path) -> None:
    for iteration in (1, 2, 3):
        save(tmp_path, 3, iteration)
    names = sorted(path.name[:6] for path in (tmp_path / FOLDER).iterdir())
    assert names == ["000002", "000002", "000003", "000003"]
    assert read_checkpoint(tmp_path / PREVIOUS).iteration == 2
    save_checkpoint(tmp_path, Checkpoint("id", 4, False, "", STATE))
    save_checkpoint(tmp_path, Checkpoint("id", 5, False, "", STATE))
    assert not (tmp_path / FOLDER).exists()


@pytest.mark.parametrize("damage", ["missing", "cut", "of another checkpoint"])
def test_a_bad_shard_makes_the_one_before_count(damage: str, tmp_path: Path) -> None:
    save(tmp_path, 2, 1)
    save(tmp_path, 2, 2)
    old, new = sorted((tmp_path / FOLDER).iterdir())
    if damage == "missing":
        new.unlink()
    elif damage == "cut":
        new.write_bytes(new.read_bytes()[:-10])
    else:
        shutil.copy(old, new)
    checkpoint, note = load_checkpoint(tmp_path, "id")
    assert checkpoint is not None
    assert checkpoint.iteration == 1
    assert new.name in note
    old.unlink()
    with pytest.raises(FileError, match="nor the one before it"):
        load_checkpoint(tmp_path, "id")


def test_ranks_that_differ_are_told_and_not_mixed(tmp_path: Path) -> None:
    """Unlike processors may round otherwise; then the leader writes what it has, whole."""
    notes = save(tmp_path, 3, models=np.nextafter(STATE["models"], 2), spread=0.1 + 0.2, plan="3 frames")
    assert len(set(notes)) == 1
    assert notes[0].startswith("The numbers of rank 2 on here differ from those of rank 0 on here")
    assert not (tmp_path / FOLDER).exists()
    np.testing.assert_array_equal(read_checkpoint(tmp_path / LAST).state["models"], STATE["models"])


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("stage", 2),
        ("rows", STATE["rows"] + 1),
        ("models", np.zeros((2, 7, 7, 7), np.float32)),
        ("models", STATE["models"].astype(np.float64)),
        ("one more", 0.5),
        ("spread", None),
    ],
)
def test_ranks_that_do_other_work_are_a_defect_and_leave_what_was_there(
    name: str, other: Any, tmp_path: Path
) -> None:
    save(tmp_path, 3, 1)
    errors = save(tmp_path, 3, 2, **{name: other})
    told = f"which showed on rank 2 on here: its state '{name}' is not that of rank 0 on here."
    assert [told in str(error) for error in errors] == [True] * 3
    assert {error.kind for error in errors} == {"defect"}
    assert read_checkpoint(tmp_path / LAST).iteration == 1


def test_a_rank_that_cannot_write_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path, 3, 1)
    before = sorted(path.name for path in tmp_path.rglob("*"))
    write = shards.write_state_file

    def full(path: Path, *rest: Any) -> str:
        if path.name.endswith("_002.h5"):
            raise FileError(path, "could not be written: the disk is full.")
        return write(path, *rest)

    monkeypatch.setattr(shards, "write_state_file", full)
    errors = save(tmp_path, 3, 2)
    assert all("the disk is full" in str(error) for error in errors)
    assert sorted(path.name for path in tmp_path.rglob("*")) == before
    assert read_checkpoint(tmp_path / LAST).iteration == 1


def test_a_checkpoint_that_has_its_name_keeps_its_shards_whatever_fails_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path, 3, 1)

    def fail(_: Path) -> None:
        raise OSError(errno.EIO, "the disk does not answer")

    monkeypatch.setattr(checkpoints, "sync_directory", fail)
    errors = save(tmp_path, 3, 2)
    assert all("the disk does not answer" in str(error) for error in errors)
    assert read_checkpoint(tmp_path / LAST).iteration == 2
    assert read_checkpoint(tmp_path / PREVIOUS).iteration == 1


def test_a_checkpoint_that_does_not_get_its_name_leaves_no_shards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path, 3, 1)
    before = sorted(path.name for path in tmp_path.rglob("*"))

    def fail(path: Path, *_: Any) -> None:
        raise FileError(path, "could not be written: the disk is full.")

    monkeypatch.setattr(checkpoints, "write_state_file", fail)
    assert all("the disk is full" in str(error) for error in save(tmp_path, 3, 2))
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


def test_names_of_shards_are_on_the_disk_before_a_checkpoint_tells_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, int]] = []

    def note(directory: Path) -> None:
        seen.append((directory.name, len(list((tmp_path / FOLDER).iterdir()))))
        assert not (tmp_path / LAST).exists()

    monkeypatch.setattr(shards, "sync_directory", note)
    assert save(tmp_path, 3, 1) == [""] * 3
    assert [name for name, _ in seen] == [tmp_path.name, FOLDER, FOLDER]
    assert seen[-1] == (FOLDER, 2)
