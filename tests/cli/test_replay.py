"""``orienteer replay``: a file as a live stream."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from orienteer.source.opening import writer_for
from orienteer.source.patterns import Patterns
from orienteer.stream.opening import open_stream

pytest.importorskip("zmq")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    frames = np.random.default_rng(0).poisson(1.0, (300, 4, 4)).astype(np.uint16)
    with writer_for(tmp_path / "frames.h5", frame_shape=(4, 4)) as writer:
        writer.append(Patterns(frames.reshape(300, 16), np.arange(300)))
    return tmp_path / "frames.h5"


Start = Callable[..., tuple[subprocess.Popen[str], str]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a replay in a process of its own; gives also the address that it says."""
    started: list[subprocess.Popen[str]] = []

    def begin(*arguments: str) -> tuple[subprocess.Popen[str], str]:
        command = [sys.executable, "-m", "orienteer", "replay", *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.append(process)
        line = process.stderr.readline()
        assert "tcp://" in line, line + process.communicate(timeout=60)[1]
        return process, line.split()[-1]

    yield begin
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.parametrize("push", [False, True])
def test_a_file_is_served_and_the_command_ends_when_asked_to(file: Path, start: Start, push: bool) -> None:
    process, address = start(str(file), "--to", "tcp://127.0.0.1:*", "--once", "--json", *(["--push"] * push))
    source = open_stream(("push+" if push else "") + address, connect_s=60.0)
    ids: list[int] = []
    while not source.is_finished:
        if (events := source.next(5.0)) is not None:
            ids += events.event_id.tolist()
    source.close()
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert ids == list(range(300))
    assert json.loads(output)["sent"] == 300


def test_a_server_that_is_killed_at_random_and_started_again_loses_nothing(file: Path, start: Start) -> None:
    process, address = start(str(file), "--to", "tcp://127.0.0.1:*", "--rate", "400")
    source = open_stream(address, most_events=20, patience_s=0.3, connect_s=60.0)
    ids: list[int] = []
    for n_wanted in (60, 160):
        while len(ids) < n_wanted:
            if (events := source.next(1.0)) is not None:
                ids += events.event_id.tolist()
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        process, _ = start(str(file), "--to", address, "--rate", "400")
    while not source.is_finished:
        if (events := source.next(1.0)) is not None:
            ids += events.event_id.tolist()
    source.close()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert ids == list(range(300))


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("--rate", "0"), "above 0"),
        (("--loop", "--once"), "no end"),
        (("--to", "tcp://127.0.0.1:99999"), "no port 99999"),
    ],
)
def test_options_that_cannot_be_are_refused(file: Path, option: tuple[str, ...], words: str) -> None:
    command = [sys.executable, "-m", "orienteer", "replay", str(file), *option]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 2  # what, and what next


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("push", [False, True])
def test_a_replay_that_is_stopped_says_what_was_sent_and_how_it_goes_on(
    file: Path, start: Start, number: signal.Signals, push: bool
) -> None:
    process, address = start(str(file), "--to", "tcp://127.0.0.1:*", "--loop", *(["--push"] * push))
    source = open_stream(("push+" if push else "") + address, connect_s=60.0)
    n_batches = 0
    while n_batches < 3:  # the last one is counted when the next one goes out
        n_batches += source.next(5.0) is not None
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    source.close()
    assert process.returncode == (0 if number == signal.SIGINT else 143)
    (line,) = said.strip().splitlines()
    assert line.startswith("Stopped. The same command ")
    assert ("listeners lose nothing" in line) != push
    assert int(line.split(". ")[-1].split()[0].replace(",", "")) > 0
