"""When ranks are started again, and when not."""

import json
import signal
from dataclasses import asdict
from pathlib import Path

import pytest

import orienteer.run.supervise as supervising
from orienteer.run.checkpoint import Checkpoint, save_checkpoint
from orienteer.run.events import EventLog, read_events
from orienteer.run.fault import Fault
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


def test_a_signal_that_ended_the_ranks_counts_whatever_the_launcher_tells(tmp_path: Path) -> None:
    def start() -> Ending:
        told = Fault("signal", "The step under way was given up.", "", 1, "node", 128 + signal.SIGUSR1)
        (tmp_path / "fault.json").write_text(json.dumps(asdict(told)))
        return Ending(9, 0, [Lost("node", None, 7, "was killed (signal 9)")])

    assert supervise(tmp_path, start, restarts=3, say=lambda _: None) == (138, "")


def test_a_signal_that_was_passed_on_is_the_end(tmp_path: Path) -> None:
    assert supervised(tmp_path, Ending(1, signal.SIGUSR1), Ending()) == (138, 1)


def test_a_rank_that_was_killed_is_started_again(tmp_path: Path) -> None:
    killed = Ending(137, 0, [Lost("node", 0, None, "was killed (signal 9)")])
    assert supervised(tmp_path, killed, Ending()) == (0, 2)


def fault(kind: str, words: str = "node: it broke") -> Fault:
    return Fault(kind, f"rank 1 on {words}", "", 1, "node")  # type: ignore[arg-type]


def given_up(folder: Path, restarts: int, *faults: tuple[Fault, int]) -> tuple[str, list[str], int]:
    """Why a job was given up whose starts end in these faults and iterations; what was said; its starts."""
    left, said = list(faults), list[str]()

    def start() -> Ending:
        if not left:
            return Ending()
        what, iteration = left.pop(0)
        save_checkpoint(folder, Checkpoint("id", iteration, False, "", {}))
        (folder / "fault.json").write_text(json.dumps(asdict(what)))
        return Ending(1)

    status, why = supervise(folder, start, restarts, said.append)
    assert (status == 0) == (why == "" and not left)
    return why, said, len(faults) - len(left)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervising, "_PAUSE_S", 0.0)


def test_a_fault_with_progress_between_is_tried_again_as_often_as_allowed(tmp_path: Path) -> None:
    faults = [(fault("defect"), iteration) for iteration in (1, 2, 3, 4)]
    why, said, n_starts = given_up(tmp_path, 3, *faults)
    assert "3 restarts were allowed, and all are used" in why
    assert n_starts == 4
    assert said == [f"Starting again from iteration {i} (restart {i} of 3)." for i in (1, 2, 3)]
    assert given_up(tmp_path, 4, *faults)[0] == ""
    assert "no restart was allowed" in given_up(tmp_path, 0, faults[0])[0]


def test_the_same_defect_in_the_same_place_is_not_tried_a_third_time(tmp_path: Path) -> None:
    again = [(fault("defect", "node: it broke"), 5), (fault("defect", "another: it broke"), 5)]
    why, _, n_starts = given_up(tmp_path, 9, *again, (fault("defect"), 5))
    assert why == "The run is not started again: the same fault has come twice after iteration 5."
    assert n_starts == 2


def test_three_deaths_without_progress_are_enough(tmp_path: Path) -> None:
    why, _, n_starts = given_up(tmp_path, 9, *[(fault("death", f"node: {n}"), 5) for n in range(4)])
    assert "3 starts in a row have ended after iteration 5, without progress" in why
    assert n_starts == 3


@pytest.mark.parametrize("kind", ["error", "settings"])
def test_what_the_user_has_to_mend_is_not_tried_again(kind: str, tmp_path: Path) -> None:
    left = [(fault(kind), 5), (fault(kind), 5)]

    def start() -> Ending:
        (tmp_path / "fault.json").write_text(json.dumps(asdict(left.pop()[0])))
        return Ending(1)

    assert supervise(tmp_path, start, 9, lambda _: None) == (1, "")
    assert len(left) == 1


def test_the_rank_that_has_ended_first_is_named_whatever_the_launcher_says(tmp_path: Path) -> None:
    EventLog(tmp_path / "events.jsonl").append("started", iteration=0)
    lost = Lost("node6", 0, 42, "was killed (signal 9)")
    endings = [Ending(9, 0, [lost], first=(1, "node7")), Ending()]
    said: list[str] = []
    assert supervise(tmp_path, lambda: endings.pop(0), 3, said.append) == (0, "")
    assert said[0].startswith("rank 1 on node7 was killed (signal 9). The system kills a process")
    assert read_events(tmp_path / "events.jsonl")[-1]["rank"] == 1


def test_a_run_that_was_to_begin_anew_does_not_go_on_from_the_old_one(tmp_path: Path) -> None:
    """Its checkpoint is still there when the ranks of the new one are lost."""
    save_checkpoint(tmp_path, Checkpoint("old", 40, False, "", {}))
    endings = [Ending(137, 0, [Lost("node", 0, None, "was killed (signal 9)")]), Ending()]
    said: list[str] = []
    supervise(tmp_path, lambda: endings.pop(0), 3, said.append, saved=lambda _: 0)
    assert "Starting again from the beginning (restart 1 of 3)." in said
