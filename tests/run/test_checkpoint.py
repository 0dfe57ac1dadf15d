"""Checkpoints: the same bits come back, and a damaged file is never taken for a good one."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orienteer.errors import FileError
from orienteer.run.checkpoint import (
    LAST,
    PREVIOUS,
    Checkpoint,
    load_checkpoint,
    read_checkpoint,
    save_checkpoint,
)

STATE: dict[str, Any] = {
    "model/0/values": np.random.default_rng(1).random((5, 6, 7), dtype=np.float32),
    "model/0/missing": np.array([[True, False], [False, True]]),
    "half": np.arange(5, dtype=np.float16),
    "field": np.array([1 + 2j, np.nan], np.complex64),
    "rows": np.array([2**63 + 5], np.uint64),
    "none of them": np.zeros((0, 4)),
    "one number": np.array(3.5),
    "transposed": np.arange(6.0).reshape(2, 3).T,
    "iteration": 12,
    "temperature": 0.1 + 0.2,
    "endless": float("inf"),
    "text": "Å and \u0000 too",
    "flag": True,
    "nothing": None,
    "seed": 2**127 + 1,
}


def example(iteration: int = 12, **state: Any) -> Checkpoint:
    return Checkpoint("id", iteration, False, "", {**STATE, **state})


def test_every_bit_comes_back(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, example())
    read = read_checkpoint(tmp_path / LAST)
    assert (read.run_id, read.iteration, read.finished, read.reason) == ("id", 12, False, "")
    assert set(read.state) == set(STATE)
    for name, value in STATE.items():
        found = read.state[name]
        if isinstance(value, np.ndarray):
            assert (found.dtype, found.shape, found.tobytes()) == (value.dtype, value.shape, value.tobytes())
        else:
            assert type(found) is type(value)
            assert found == value


def test_numbers_of_numpy_come_back_as_plain_ones(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, Checkpoint("id", 1, True, "Done.", {"a": np.int64(3), "b": np.float32(0.1)}))
    state = read_checkpoint(tmp_path / LAST).state
    assert (state["a"], state["b"]) == (3, float(np.float32(0.1)))


@pytest.mark.parametrize("value", [np.array(["text"]), np.array([None]), [1, 2], {"a": 1}])
def test_what_cannot_be_kept_exactly_is_a_defect_and_no_file(value: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="the state 'x' is"):
        save_checkpoint(tmp_path, example(x=value))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seed", range(3))
def test_any_changed_byte_or_a_lost_end_is_noticed_or_harmless(seed: int, tmp_path: Path) -> None:
    path = tmp_path / LAST
    save_checkpoint(tmp_path, example())
    whole = path.read_bytes()
    draw = random.Random(seed)
    n_noticed = 0
    for _ in range(150):
        if draw.random() < 0.2:
            damaged = whole[: draw.randrange(len(whole))]
        else:
            changed = bytearray(whole)
            changed[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
            damaged = bytes(changed)
        path.write_bytes(damaged)
        try:
            read = read_checkpoint(path)
        except FileError:
            n_noticed += 1
            continue
        # The byte was one that nobody uses: everything is as it was.
        for name, value in STATE.items():
            found = read.state[name]
            is_array = isinstance(value, np.ndarray)
            assert found.tobytes() == value.tobytes() if is_array else found == value
    assert n_noticed > 50


def test_the_last_two_are_kept_and_the_better_one_is_loaded(tmp_path: Path) -> None:
    assert load_checkpoint(tmp_path, "id") == (None, "")
    for iteration in (1, 2, 3):
        save_checkpoint(tmp_path, example(iteration))
        checkpoint, note = load_checkpoint(tmp_path, "id")
        assert checkpoint is not None
        assert (checkpoint.iteration, note) == (iteration, "")
    assert sorted(p.name for p in tmp_path.iterdir()) == [LAST, PREVIOUS]
    (tmp_path / LAST).write_bytes(b"")
    checkpoint, note = load_checkpoint(tmp_path, "id")
    assert checkpoint is not None
    assert checkpoint.iteration == 2
    assert note.endswith("The run goes on from the checkpoint before it, of iteration 2.")
    (tmp_path / LAST).unlink()  # as between the two renamings
    checkpoint, note = load_checkpoint(tmp_path, "id")
    assert checkpoint is not None
    assert (checkpoint.iteration, note) == (2, "")


def test_a_checkpoint_of_another_run_is_not_taken(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, example())
    with pytest.raises(FileError, match="belongs to another run, and there is no good one before it"):
        load_checkpoint(tmp_path, "another")
