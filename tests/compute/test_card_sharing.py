"""The service by which processes share a card: started, named to what follows, and ended."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from orienteer.compute.card_sharing import shared_card

PIPES = "CUDA_MPS_PIPE_DIRECTORY"


def wait_until(is_so: Callable[[], bool]) -> bool:
    limit = time.monotonic() + 60
    while not is_so() and time.monotonic() < limit:
        time.sleep(0.02)
    return is_so()


@pytest.fixture
def control(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A control program that notes what it is told."""
    program = tmp_path / "nvidia-cuda-mps-control"
    program.write_text(
        f'#!/bin/sh\n(echo "$@"; [ -n "$1" ] || cat; echo) >> {tmp_path}/told\n'
        'while [ -z "$1" ] && [ -e "${WAITS_FOR:-/none}" ]; do sleep 0.05; done\n'
        "exit ${FAILS:-0}\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv(PIPES, raising=False)
    return tmp_path / "told"


def test_the_service_is_named_to_all_that_begins_inside_and_ends(control: Path) -> None:
    with shared_card() as is_shared:
        assert is_shared
        place = Path(os.environ[PIPES])
        assert place.is_dir()
        assert control.read_text().split() == ["-d"]
    assert PIPES not in os.environ
    assert wait_until(lambda: not place.exists())
    assert control.read_text().split() == ["-d", "quit"]


def test_a_service_that_waits_for_this_process_is_not_waited_for(
    control: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends when its last user does, and this process is one."""
    monkeypatch.setenv("WAITS_FOR", str(control.parent / "user"))
    (control.parent / "user").touch()
    with shared_card():
        place = Path(os.environ[PIPES])
    assert place.exists()
    (control.parent / "user").unlink()
    assert wait_until(lambda: not place.exists())


def test_without_a_service_everything_stays_as_it_is(control: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAILS", "1")
    with shared_card() as is_shared:
        assert not is_shared
        assert PIPES not in os.environ
    monkeypatch.setenv("PATH", "/nowhere")
    with shared_card() as is_shared:
        assert not is_shared


def test_a_service_of_somebody_else_is_taken_and_left_alone(
    control: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PIPES, "/somewhere")
    with shared_card() as is_shared:
        assert is_shared
    assert os.environ[PIPES] == "/somewhere"
    assert not control.exists()
