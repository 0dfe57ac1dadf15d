"""Runs on several ranks: the same answer on any number of them, and one clear end when one cannot go on."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orienteer.run import supervise
from orienteer.run.checkpoint import LAST, PREVIOUS, read_checkpoint
from orienteer.run.events import read_events
from orienteer.run.fault import read_fault
from orienteer.run.launch import Ending, launch
from orienteer.run.shards import FOLDER

PROGRAM = Path(__file__).with_name("on_ranks.py")
MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
pytestmark = pytest.mark.skipif(
    MPIEXEC is None or find_spec("mpi4py") is None, reason="needs mpiexec and mpi4py, not both are here"
)
# A few thousand bytes make shards here.
SETTINGS: dict[str, Any] = {"steps": 6, "edge": 12, "models": 2, "shard_bytes": 2000}
ONE_MINUTE = 60
# A rank that is silent for three tenths of this does not answer; a live one may be, for a second or two.
HANG_S = 15.0
ANOTHER_RANK = pytest.mark.slow(reason="the first rank meets the same every time")
ANOTHER_ONE = pytest.mark.slow(reason="that another setting is compared is tried every time")
# Where a rank ends all others, mpiexec tells its status or that of one which it has killed.
KILLED = int(signal.SIGKILL)


def command(folder: Path, **settings: Any) -> list[str]:
    given = [f"{name}={json.dumps(value)}" for name, value in {**SETTINGS, **settings}.items()]
    return [sys.executable, str(PROGRAM), str(folder), *given]


def carry_out(n: int, folder: Path, **settings: Any) -> subprocess.CompletedProcess[str]:
    assert MPIEXEC is not None
    program = [MPIEXEC, "-n", str(n), *command(folder, **settings)]
    return subprocess.run(program, capture_output=True, text=True, timeout=3 * ONE_MINUTE, check=False)


def outcome(folder: Path) -> dict[str, Any]:
    """Everything that must not depend on ranks, faults and starts."""
    checkpoint = read_checkpoint(folder / LAST)
    steps = [event for event in read_events(folder / "events.jsonl") if event["event"] == "step"]
    return {
        "state": {k: v.tobytes() if isinstance(v, np.ndarray) else v for k, v in checkpoint.state.items()},
        "end": (checkpoint.iteration, checkpoint.finished, checkpoint.reason),
        "steps": [{k: v for k, v in step.items() if k != "time"} for step in steps],
        "intensity": (folder / "intensity_2.mrc").read_bytes()[1024:],  # the header tells the time
        "last event": read_events(folder / "events.jsonl")[-1]["event"],
    }


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a process alone finds."""
    folder = tmp_path_factory.mktemp("alone") / "run"
    subprocess.run(command(folder), check=True, capture_output=True, timeout=ONE_MINUTE)
    return outcome(folder)


def test_four_ranks_stopped_go_on_as_two_and_end_as_one(wanted: dict[str, Any], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    first = carry_out(4, folder, n_steps=3)
    assert first.returncode == 0, first.stderr
    assert first.stdout.split() == ["1", "2", "3"]
    assert read_checkpoint(folder / LAST).iteration == 3
    assert len(list((folder / FOLDER).iterdir())) == 6, "three shards of each of two checkpoints"
    second = carry_out(2, folder)
    assert second.returncode == 0, second.stderr
    assert second.stdout.split() == ["4", "5", "6"]
    assert outcome(folder) == wanted
    begun = [event for event in read_events(folder / "events.jsonl") if "ranks" in event]
    assert [len(event["ranks"]) for event in begun] == [4, 2]


@pytest.mark.parametrize(
    ("what", "settings", "told"),
    [
        ("defect", {}, r"defect, which showed on rank 1 on \S+: ZeroDivisionError: the step fails"),
        ("memory", {}, r"rank 1 on \S+ has run out of memory"),
        ("error", {}, r"the lamp is broken \(rank 1 on \S+\)\. Mend it\."),
        ("hang", {"hang_s": HANG_S}, rf"rank 1 on \S+ has done nothing for {HANG_S:.0f} s, at "),
        ("freeze", {"hang_s": HANG_S}, r"rank 1 on \S+ has not answered for \d+ s"),
        ("full disk", {}, r"_001\.h5: could not be written: the disk is full .*\(rank 1 on \S+\)"),
    ],
)
def test_a_rank_that_cannot_go_on_ends_all_in_one_message(
    what: str, settings: dict[str, Any], told: str, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    ended = carry_out(2, folder, bad_rank=1, bad_step=3, what=what, **settings)
    assert ended.returncode in (1, KILLED), ended.stdout + ended.stderr
    said = [line for line in ended.stderr.splitlines() if not line.startswith("Abort(")]
    assert len(re.findall(told, ended.stderr)) == 1
    assert len(said) <= 2, said
    assert "The same command resumes the run" in ended.stderr
    assert read_events(folder / "events.jsonl")[-1]["event"] == "failed"
    assert 1 <= read_checkpoint(folder / LAST).iteration <= 2


@pytest.mark.parametrize("rank", [0, pytest.param(1, marks=ANOTHER_RANK)])
def test_a_fault_that_all_can_agree_on_leaves_word_for_who_has_started_the_job(
    rank: int, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    ended = carry_out(2, folder, bad_rank=rank, bad_step=3, what="late memory")
    assert ended.returncode in (1, KILLED)
    fault = read_fault(folder)
    assert fault is not None
    assert fault.kind == "memory"
    assert re.search(rf"rank {rank} on \S+ has run out of memory", fault.message)


def test_a_signal_to_one_rank_is_heard_by_all(wanted: dict[str, Any], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    once = str(tmp_path / "once")
    ended = carry_out(2, folder, bad_rank=1, bad_step=3, what="signal", once=once)
    assert ended.returncode == 128 + signal.SIGTERM, ended.stderr
    assert ended.stderr.count("Stopped; everything up to iteration 3 is kept.") == 1
    again = carry_out(3, folder, bad_rank=1, bad_step=3, what="signal", once=once)
    assert again.stdout.split() == ["4", "5", "6"], again.stderr
    assert outcome(folder) == wanted


def test_a_long_step_is_given_up_within_the_notice(tmp_path: Path) -> None:
    number = signal.SIGUSR1
    folder = tmp_path / "run"
    slow = tmp_path / "slow"
    slow.touch()
    settings = {"slow_from": 3, "step_s": 100.0, "slow_while": str(slow), "notice_s": 3.0}
    assert MPIEXEC is not None
    child = subprocess.Popen(
        [MPIEXEC, "-n", "2", *command(folder, **settings)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_for(lambda: iteration_of(folder) == 2)
    child.send_signal(number)
    _, said = child.communicate(timeout=ONE_MINUTE)
    fault = read_fault(folder)
    assert fault is not None
    assert (fault.kind, fault.status) == ("signal", 128 + number)
    assert child.returncode in (fault.status, KILLED)
    assert len(re.findall(r"given up; everything up to iteration [12] is kept", said)) == 1
    assert read_events(folder / "events.jsonl")[-1]["abandoned"] is True


def iteration_of(folder: Path) -> int:
    steps = [event["iteration"] for event in read_events(folder / "events.jsonl") if event["event"] == "step"]
    return max(steps, default=0)


def wait_for(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + ONE_MINUTE
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 11))])
def test_a_rank_killed_at_any_time_changes_nothing(seed: int, wanted: dict[str, Any], tmp_path: Path) -> None:
    folder, held = tmp_path / "run", tmp_path / "held"
    held.touch()
    draw = random.Random(seed)
    said: list[str] = []
    starts: list[int] = []
    bad = draw.randrange(3)
    program = command(folder, step_s=0.2, held=str(held))

    def start() -> Ending:
        """Three ranks, of which one is killed; then two."""
        starts.append(3 if not starts else 2)
        if len(starts) > 1:
            return launch(program, starts[-1])
        child = subprocess.Popen(
            [sys.executable, "-c", KILLER, str(folder), str(bad), str(draw.uniform(0, 1.5)), str(held)]
        )
        try:
            return launch(program, starts[-1])
        finally:
            child.kill()
            child.wait()

    assert supervise.supervise(folder, start, 3, said.append) == (0, "")
    assert starts == [3, 2], said
    noted = [event for event in read_events(folder / "events.jsonl") if event["event"] == "failed"]
    assert [event["rank"] for event in noted] == [bad]
    assert re.search(r"rank \d on \S+ (was killed|has died)", noted[0]["reason"])
    assert said[-1].startswith("Starting again from ")
    assert outcome(folder) == wanted


# Waits for the first step, then kills a rank after a while; until then the last step does not end.
KILLER = """
import json, os, signal, sys, time
from pathlib import Path
events = Path(sys.argv[1]) / "events.jsonl"
while not (events.exists() and '"step"' in events.read_text()):
    time.sleep(0.01)
time.sleep(float(sys.argv[3]))
begun = json.loads(events.read_text().splitlines()[0])
os.kill(begun["ranks"][int(sys.argv[2])][1], signal.SIGKILL)
Path(sys.argv[4]).unlink()
"""


def test_a_missing_shard_falls_back_and_two_are_told(wanted: dict[str, Any], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert carry_out(2, folder, n_steps=2).returncode == 0
    last = sorted((folder / FOLDER).iterdir())[-1]
    kept = last.read_bytes()
    last.unlink()
    with pytest.raises(Exception, match="is missing; it is a part of the checkpoint"):
        read_checkpoint(folder / LAST)
    for other in (folder / FOLDER).iterdir():
        other.write_bytes(other.read_bytes()[:-100])
    refused = carry_out(2, folder)
    assert refused.returncode == 1
    assert refused.stderr.count("nor the one before it") == 1
    assert last.name in refused.stderr
    assert (folder / PREVIOUS).exists()
    last.write_bytes(kept)
    done = carry_out(2, folder)
    assert done.returncode == 0, done.stderr
    assert outcome(folder) == wanted


def test_more_ranks_than_frames_are_refused_in_one_message(tmp_path: Path) -> None:
    refused = carry_out(4, tmp_path / "run", steps=1, n_frames=3)
    assert refused.returncode == 1
    assert refused.stderr.count("there are 4 ranks, but only 3 frames.") == 1
    assert not (tmp_path / "run").exists()


def test_ranks_of_different_programs_are_refused_in_one_message(tmp_path: Path) -> None:
    refused = carry_out(2, tmp_path / "run", other_version="99.9")
    assert refused.returncode == 1
    assert len(re.findall(r"rank 1 on \S+ has Orienteer 99\.9, and rank 0 on \S+ has", refused.stderr)) == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ("{steps = 5}", r"has steps 5, and rank 0 on \S+ has steps 6"),
        pytest.param("{seed = 4}", r"has seed 4, and rank 0", marks=ANOTHER_ONE),
        ('{folder = "elsewhere"}', r"has folder \S+elsewhere, and rank 0"),
        ('{method = "auto"}', r"has method auto, and rank 0 on \S+ has method shared"),
        ("{restart = true}", r"has restart True, and rank 0"),
        pytest.param(
            "{n_steps = 2}", r"has n_steps 2, and rank 0 on \S+ has n_steps None", marks=ANOTHER_ONE
        ),
        pytest.param("{hang_s = 0.0}", r"has hang_s 0.0, and rank 0", marks=ANOTHER_ONE),
    ],
)
def test_ranks_with_different_settings_are_refused_in_one_message(
    other: str, told: str, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    refused = subprocess.run(
        [MPIEXEC, "-n", "2", *command(folder), f"other={other}"], capture_output=True, text=True, timeout=60
    )
    assert refused.returncode == 1
    assert len(re.findall(rf"rank 1 on \S+ {told}", refused.stderr)) == 1, refused.stderr
    assert not (folder / "checkpoint.h5").exists()


def test_a_rank_without_a_device_is_told_in_one_message_before_anything_is_written(tmp_path: Path) -> None:
    refused = carry_out(2, tmp_path / "run", no_device=True)
    assert refused.returncode == 1
    assert len(re.findall(r"there is no lamp \(rank 1 on \S+\)\.\nBring one", refused.stderr)) == 1
    assert not (tmp_path / "run").exists()


def test_one_rank_looks_at_the_data_to_choose_a_method_for_all(tmp_path: Path) -> None:
    done = carry_out(2, tmp_path / "run", method="auto", steps=1)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:2] == ["chosen by 0", "1"]
    assert "chosen by 1" not in done.stdout


def test_ranks_that_round_otherwise_are_named_once(tmp_path: Path) -> None:
    done = carry_out(2, tmp_path / "run", steps=3, what="rounding", bad_rank=1)
    assert done.returncode == 0, done.stderr
    told = r"The numbers of rank 1 on \S+ differ from those of rank 0 on \S+, as they do if"
    assert len(re.findall(told, done.stderr)) == 1
    (note,) = [event for event in read_events(tmp_path / "run" / "events.jsonl") if event["event"] == "note"]
    assert re.match(told, note["note"])


@pytest.mark.parametrize("rank", [0, 1])
def test_a_checkpoint_under_way_is_ended_after_a_signal_however_long_it_takes(
    rank: int, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    what = "signal while it is saved"
    ended = carry_out(2, folder, bad_rank=rank, bad_step=1, what=what, state_s=2.0, notice_s=2.0)
    assert ended.returncode == 128 + signal.SIGTERM, ended.stderr
    assert read_checkpoint(folder / LAST).iteration >= 1
    assert len(re.findall(r"everything up to iteration \d is kept", ended.stderr)) == 1
