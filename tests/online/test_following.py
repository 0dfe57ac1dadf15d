"""A growing map in a folder: written by others meanwhile, killed, resumed, stopped, shown, handed over."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orienteer
from orienteer.errors import FileError, OrienteerError
from orienteer.online.following import follow
from orienteer.online.handover import hand_over
from orienteer.online.online_emc import OnlineEmc
from orienteer.run import session as session_module
from orienteer.run.checkpoint import LAST, read_checkpoint, save_checkpoint
from orienteer.run.events import STEP, read_events
from orienteer.run.run import Run
from orienteer.run.settings import Settings
from orienteer.run.standing import read_standing
from orienteer.source.orienteer_hdf5 import Writer

# A program that follows a file of hits, which is over after so many steps.
PROGRAM = """
import sys
from pathlib import Path
import orienteer
from orienteer.online.following import follow
from orienteer.run.events import read_events
from orienteer.run.settings import Settings
hits, folder, settings, n = sys.argv[1:5]
def is_over():
    return sum(e["event"] == "step" for e in read_events(Path(folder, "events.jsonl"))) >= int(n)
settings = Settings.model_validate_json(settings)
follow(orienteer.open(hits), folder, settings, seed=1, device="cpu", is_over=is_over, pause_s=0.05)
"""
EMC = {"diameter_A": 200.0, "deterministic": True, "level": 3}
COARSE = {**EMC, "level": 2}
SETTINGS = Settings(emc=EMC, online={"first_hits": 60, "round_hits": 90})
ROUNDS = 4


def start(hits: Path, folder: Path, n_rounds: int) -> subprocess.Popen[bytes]:
    arguments = [str(hits), str(folder), SETTINGS.model_dump_json(), str(n_rounds)]
    return subprocess.Popen([sys.executable, "-W", "ignore", "-c", PROGRAM, *arguments])


def write_hits(path: Path, frames: Any, n: int = 240) -> None:
    with Writer(path, detector=frames.detector) as writer:
        writer.append(frames.read(slice(0, n)))


def n_steps(folder: Path) -> int:
    return sum(event["event"] == STEP for event in read_events(folder / "events.jsonl"))


def outcome(folder: Path) -> tuple[Any, ...]:
    state = read_checkpoint(folder / LAST).state
    values = Run.open(folder).volumes()[0].values
    nats = [step["log_likelihood"] for step in Run.open(folder).steps]
    return values, state["final/models"], state["arrivals/chosen"], nats


def test_a_file_is_followed_while_it_grows_and_the_map_is_a_run(frames: Any, tmp_path: Path) -> None:
    hits, folder = tmp_path / "hits.h5", tmp_path / "map"
    patterns, written = frames.read(), threading.Event()

    def write() -> None:
        with Writer(hits, detector=frames.detector, live=True, commit_every_s=0.0) as writer:
            for first in range(0, 240, 24):
                writer.append(patterns[first : first + 24])
                time.sleep(0.05)
        written.set()

    thread = threading.Thread(target=write)
    thread.start()
    while not hits.exists():
        time.sleep(0.01)
    told = []
    follow(
        orienteer.open(hits), folder, SETTINGS, seed=1, device="cpu", is_over=written.is_set,
        on_step=told.append, pause_s=0.02,
    )  # fmt: skip
    thread.join()
    run = Run.open(folder)
    assert run.finished
    assert run.iteration == len(told) == told[-1].iteration
    assert np.array_equal(np.sort(run.orientations()["event_id"]), np.sort(patterns.event_id))
    assert run.volumes()[0].values.shape[0] > 10
    assert read_standing(folder).state == "finished"
    # The data of the run are those that have come in the end.
    assert run.described["input"]["frames"] == 240
    assert len(run.source) == 240
    n = n_steps(folder)
    follow(orienteer.open(hits), folder, SETTINGS, seed=1, device="cpu")  # there is nothing left to do
    assert n_steps(folder) == n


def test_killed_again_and_again_it_ends_in_the_same_bits(frames: Any, tmp_path: Path) -> None:
    hits, one, killed = tmp_path / "hits.h5", tmp_path / "one", tmp_path / "killed"
    write_hits(hits, frames, 150)
    follow(orienteer.open(hits), one, SETTINGS, seed=1, device="cpu", is_over=lambda: n_steps(one) >= ROUNDS)
    for n_more in (1, ROUNDS):  # in the rounds, and in the end
        child, n_wanted = start(hits, killed, ROUNDS), n_steps(killed) + n_more
        while n_steps(killed) < n_wanted and child.poll() is None:
            time.sleep(0.02)
        child.send_signal(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
    assert not Run.open(killed).finished
    assert start(hits, killed, ROUNDS).wait() == 0
    for wanted, found in zip(outcome(one), outcome(killed), strict=True):
        assert np.array_equal(wanted, found, equal_nan=True)


def test_a_signal_leaves_it_such_that_it_goes_on(frames: Any, tmp_path: Path) -> None:
    hits, folder = tmp_path / "hits.h5", tmp_path / "map"
    write_hits(hits, frames, 100)
    child = start(hits, folder, 10**6)
    while n_steps(folder) < 2 and child.poll() is None:
        time.sleep(0.02)
    child.send_signal(signal.SIGTERM)
    assert child.wait() != 0
    assert read_standing(folder).state == "stopped"
    n = n_steps(folder)
    is_over = iter([False, False, True])
    follow(
        orienteer.open(hits), folder, SETTINGS, seed=1, device="cpu", is_over=lambda: False,
        is_stopping=lambda: next(is_over), pause_s=0.0,
    )  # fmt: skip
    assert n_steps(folder) >= n
    assert not Run.open(folder).finished


def test_other_settings_are_refused(frames: Any, growing: Callable[..., Any], tmp_path: Path) -> None:
    stop = iter([False, True])
    follow(
        growing(100), tmp_path / "map", SETTINGS, device="cpu", is_over=lambda: False,
        is_stopping=lambda: next(stop),
    )  # fmt: skip
    other = Settings(emc={**EMC, "symmetry": "C2"})
    with pytest.raises(FileError, match="symmetry"):
        follow(growing(100), tmp_path / "map", other, device="cpu")


def test_hits_that_were_not_chosen_are_not_in_the_data_of_the_run(frames: Any, tmp_path: Path) -> None:
    hits = tmp_path / "hits.h5"
    write_hits(hits, frames, 60)
    settings = Settings(emc=COARSE, online={"first_hits": 20, "finish": "no"})
    is_odd = lambda columns: columns["event_id"] % 2 == 1  # noqa: E731
    follow(orienteer.open(hits), tmp_path / "map", settings, seed=1, device="cpu", select=is_odd)
    run = Run.open(tmp_path / "map")
    assert run.finished
    assert set(run.source.event_ids().tolist()) == set(run.orientations()["event_id"].tolist())
    assert 20 <= len(run.source) < 60


def test_excluded_hits_are_not_in_the_data_of_the_run(frames: Any, tmp_path: Path) -> None:
    hits = tmp_path / "hits.h5"
    write_hits(hits, frames, 60)
    source = orienteer.open(hits)
    out = source.event_ids(slice(5, 15))
    told = iter([out, None, out[:3]])
    settings = Settings(emc=COARSE, online={"first_hits": 20, "finish": "no"})
    follow(
        source, tmp_path / "map", settings, seed=1, device="cpu", excluded=lambda: next(told, None)
    )  # fmt: skip
    run = Run.open(tmp_path / "map")
    expected = set(source.event_ids().tolist()) - set(out[:3].tolist())
    assert set(run.source.event_ids().tolist()) == expected
    assert set(run.orientations()["event_id"].tolist()) == expected
    assert [step["n_excluded"] for step in run.steps[:3]] == [10, 10, 3]


def test_without_hits_it_ends_and_says_so(growing: Callable[..., Any], tmp_path: Path) -> None:
    follow(growing(0), tmp_path / "map", SETTINGS, device="cpu")
    run = Run.open(tmp_path / "map")
    assert run.finished
    assert run.reason == "No hits came, too few for a map."


def test_hits_without_a_detector_are_refused(frames: Any, tmp_path: Path) -> None:
    with pytest.raises(OrienteerError, match="detector geometry of these hits"):
        follow(orienteer.open(frames.read().dense()), tmp_path / "map", device="cpu")
    assert not os.path.exists(tmp_path / "map")


def test_a_map_is_handed_over_to_a_batch_run_at_any_moment(
    frames: Any, growing: Callable[..., Any], tmp_path: Path
) -> None:
    stop = iter([False] * 8 + [True])
    follow(
        growing(150), tmp_path / "map", SETTINGS, seed=1, device="cpu", is_over=lambda: False,
        is_stopping=lambda: next(stop),
    )  # fmt: skip
    run = Run.create(tmp_path / "batch", frames, SETTINGS, seed=1, device="cpu")
    hand_over(run, tmp_path / "map")
    handed = next(run.iterate(1))
    at_random = next(Run.create(tmp_path / "random", frames, SETTINGS, seed=1, device="cpu").iterate(1))
    assert handed.iteration == 1
    assert handed.perplexity < at_random.perplexity / 3
    assert handed.log_likelihood > at_random.log_likelihood + 1
    hand_over(run, tmp_path / "map")  # it has begun: it goes on
    assert run.iteration == 1


def test_a_folder_without_a_growing_map_is_refused(frames: Any, tmp_path: Path) -> None:
    run = Run.create(tmp_path / "batch", frames, SETTINGS, seed=1, device="cpu")
    next(run.iterate(1))
    other = Run.create(tmp_path / "other", frames, SETTINGS, seed=1, device="cpu")
    with pytest.raises(FileError, match="no map that has grown"):
        hand_over(other, tmp_path / "batch")


def test_whoever_is_left_by_an_error_leaves_no_file_that_is_still_being_written(
    growing: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another may have the folder at once, or move it away."""

    def slow(*arguments: Any) -> str:
        time.sleep(1.0)
        return save_checkpoint(*arguments)

    def fail(_: Any) -> None:
        raise OrienteerError("the page is full.")

    monkeypatch.setattr(session_module, "save_checkpoint", slow)
    with pytest.raises(OrienteerError, match="the page is full"):
        follow(
            growing(arrived=120), tmp_path / "map", SETTINGS, seed=1, device="cpu",
            is_over=lambda: False, on_step=fail,
        )  # fmt: skip
    assert read_checkpoint(tmp_path / "map" / LAST).iteration == 1


@pytest.mark.parametrize("where", ["looking", "asked whether it is over", "saved while it waits"])
def test_an_error_between_two_rounds_is_in_the_log(
    growing: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def fail(*_: Any) -> Any:
        raise OrienteerError("the disk is gone.")

    hits, folder, steps = growing(arrived=120), tmp_path / "map", 0

    def is_over() -> bool:
        return bool(fail()) if where == "asked whether it is over" and steps == 2 else False

    def count(_: Any) -> None:
        nonlocal steps
        steps += 1
        if where == "looking" and steps == 2:
            monkeypatch.setattr(hits, "refresh", fail)
        elif where == "saved while it waits" and steps == 2:
            monkeypatch.setattr(session_module.Session, "_save", fail)
            monkeypatch.setattr(OnlineEmc, "has_work", False)

    with pytest.raises(OrienteerError, match="the disk is gone"):
        follow(hits, folder, SETTINGS, seed=1, device="cpu", is_over=is_over, on_step=count)
    last = read_events(folder / "events.jsonl")[-1]
    assert (last["event"], last["reason"]) == ("failed", "the disk is gone.")


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_while_hits_are_taken_in_saves_nothing_half_done(
    growing: Callable[..., Any], tmp_path: Path, kind: type[BaseException]
) -> None:
    hits, folder = growing(arrived=60), tmp_path / "map"
    read, seen = hits.read, []

    def interrupted(rows: Any) -> Any:
        if 60 in np.atleast_1d(rows):
            raise kind
        return read(rows)

    def more(step: Any) -> None:
        seen.append(step.iteration)
        hits.arrive(60)
        hits.read = interrupted

    with pytest.raises(kind):
        follow(hits, folder, SETTINGS, seed=1, device="cpu", is_over=lambda: False, on_step=more)
    last = read_events(folder / "events.jsonl")[-1]
    assert (last["event"], last["abandoned"]) == ("stopped", True)
    assert len(read_checkpoint(folder / LAST).state["arrivals/chosen"]) == 60
