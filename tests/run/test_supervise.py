"""When ranks are started again, and when not."""

import signal
from pathlib import Path

import pytest

from orienteer.run.launch import Ending, Lost
from orienteer.run.supervise import supervise


def supervised(folder: Path, *endings: Ending) -> tuple[int, int]:
    """Exit status and number of starts of a job whose starts end like this."""
    left = list(endings)
    status, _ = supervise(folder, lambda: left.pop(0), restarts=3, say=lambda _: None)
    return status, len(endings) - len(left)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_ranks_that_a_batch_system_told_to_leave_are_not_started_again(tmp_path: Path, number: int) -> None:
    lost = [Lost("node", 0, None, f"has ended: Exited with exit code {128 + number}")]
    assert supervised(tmp_path, Ending(128 + number, 0, lost), Ending()) == (128 + number, 1)


def test_a_signal_that_was_passed_on_is_the_end(tmp_path: Path) -> None:
    assert supervised(tmp_path, Ending(1, signal.SIGUSR1), Ending()) == (138, 1)


def test_a_rank_that_was_killed_is_started_again(tmp_path: Path) -> None:
    killed = Ending(137, 0, [Lost("node", 0, None, "was killed (signal 9)")])
    assert supervised(tmp_path, killed, Ending()) == (0, 2)
