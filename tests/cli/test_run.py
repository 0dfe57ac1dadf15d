"""The command that starts ranks and looks after them: what it hands on to them, and how it ends."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from orienteer.run import launch as launching
from orienteer.run.launch import Ending, Lost


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], int]]:
    """Programs and numbers of ranks that would have been started; each ends as ``endings`` say."""
    seen: list[tuple[list[str], int]] = []

    def launch(program: list[str], n_ranks: int, excluded: Any, output: Any = None) -> Ending:
        seen.append((list(program), n_ranks))
        if output is not None:
            output.write(json.dumps({"start": len(seen)}) + "\n")
        return ENDINGS.pop(0) if ENDINGS else Ending()

    ENDINGS.clear()
    monkeypatch.setattr(launching, "launch", launch)
    monkeypatch.setattr("orienteer.run.supervise._PAUSE_S", 0.0)
    return seen


ENDINGS: list[Ending] = []
KILLED = Ending(9, 0, [Lost("vm", 1, None, "was killed (signal 9)")])


def test_what_is_typed_goes_on_to_the_ranks(run: Any, started: Any) -> None:
    assert run("run", "--ranks", 4, "hits.h5", "--restarts=2", "--out", "here", "--level", 5).status == 0
    program = [sys.executable, "-m", "orienteer", "reconstruct", "hits.h5", "--out", "here", "--level", "5"]
    assert started == [(program, 4)]


def test_a_file_tells_everything_and_options_come_after_it(run: Any, started: Any) -> None:
    Path("r1.toml").write_text('[run]\ndata = "hits.h5"\nmethod = "mtip"\nseed = 3\nwavelength_A = 2.5\n')
    assert run("run", "r1.toml", "--set", "run.device=cpu", "--iterations", 4).status == 0
    assert started[0][0][3:] == [
        "reconstruct", "hits.h5", "--settings", "r1.toml", "--out", "r1", "--method", "mtip", "--seed", "3",
        "--device", "cpu", "--wavelength-A", "2.5", "--set", "run.device=cpu", "--iterations", "4",
    ]  # fmt: skip
    assert started[0][1] == 1
    assert run("run", "r1.toml", "--settings", "other.toml").status == 2
    Path("r2.toml").write_text("[run]\nseed = 3\n")
    assert "no data under [run]" in run("run", "r2.toml").errors


def begin_run(run_id: str) -> None:
    """What is in the folder of a run that was begun."""
    facts = {"method": "emc", "seed": 0, "device": "cpu", "input": {}, "settings_hash": ""}
    Path("run").mkdir(exist_ok=True)
    described = {"format": "orienteer-run", "version": 1, "run_id": run_id, **facts}
    (Path("run") / "run.json").write_text(json.dumps(described))


def test_a_killed_rank_is_told_and_the_run_goes_on_without_beginning_anew(
    run: Any, started: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin_run("old")
    launch = launching.launch

    def begin_anew(*arguments: Any) -> Ending:
        begin_run("new")
        return launch(*arguments)

    monkeypatch.setattr(launching, "launch", begin_anew)
    ENDINGS.append(KILLED)
    result = run("run", "hits.h5", "--out", "run", "--ranks", 2, "--restart")
    assert result.status == 0
    assert "rank 1 on vm was killed (signal 9)." in result.errors
    assert "Starting again from the beginning (restart 1 of 3)." in result.errors
    assert ["--restart" in program for program, _ in started] == [True, False]


def test_json_is_the_end_of_the_last_start_alone(run: Any, started: Any) -> None:
    """What ranks say that are started again is no result; scripts that read it would find two of them."""
    ENDINGS.append(KILLED)
    result = run("run", "hits.h5", "--out", "run", "--ranks", 2, "--json")
    assert json.loads(result.output) == {"start": 2}
    assert '{"start": 1}' in result.errors
    ENDINGS.extend([KILLED] * 9)
    given_up = run("run", "hits.h5", "--out", "run", "--ranks", 2, "--restarts", 0, "--json")
    assert given_up.status == 1
    assert "no restart was allowed" in json.loads(given_up.output)["error"]
    assert '{"start": 3}' in given_up.errors


@pytest.mark.parametrize("is_there", [True, False])
def test_a_rank_killed_before_the_run_was_begun_anew_does_not_bring_the_old_run_back(
    run: Any, started: Any, is_there: bool
) -> None:
    if is_there:
        begin_run("old")
    ENDINGS.append(KILLED)
    assert run("run", "hits.h5", "--out", "run", "--ranks", 2, "--restart").status == 0
    assert ["--restart" in program for program, _ in started] == [True, True]


def test_a_run_that_dies_again_and_again_is_given_up(run: Any, started: Any) -> None:
    ENDINGS.extend([KILLED] * 9)
    result = run("run", "hits.h5", "--ranks", 2, "--restarts", 9)
    assert result.status == 1
    assert "3 starts in a row have ended before the first checkpoint, without progress." in result.errors
    assert len(started) == 3


def test_the_exit_status_of_the_ranks_is_that_of_the_command(run: Any, started: Any) -> None:
    ENDINGS.append(Ending(2))
    assert run("run", "hits.h5").status == 2
    ENDINGS.append(Ending(138, 10))
    assert run("run", "hits.h5").status == 138


def test_other_commands_refuse_several_ranks(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from types import SimpleNamespace

    from orienteer.cli import main

    monkeypatch.setattr(main, "join_ranks", lambda _: SimpleNamespace(size=4, all_leave=lambda: True))
    result = run("simulate", "sphere")
    assert result.status == 1
    assert "'simulate' works in one process, but 4 ranks were started." in result.errors


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (["--out", "b"], "rank 1 was started with '--out b', and rank 0 with '--out a'."),
        (
            ["--out", "a", "--seed", "1"],
            "rank 1 was started with 'reconstruct hits.h5 --out a --seed 1', and",
        ),
    ],
)
def test_ranks_that_were_started_with_other_arguments_are_refused(other: list[str], told: str) -> None:
    from types import SimpleNamespace
    from typing import cast

    from orienteer.cli.ranks import check_command
    from orienteer.errors import OrienteerError
    from orienteer.run.crew import Crew

    begin = ["reconstruct", "hits.h5"]
    given = [[*begin, "--out", "a"], [*begin, *other]]
    team = cast(Crew, SimpleNamespace(size=2, everyone=lambda _: given, name=lambda rank: f"rank {rank}"))
    with pytest.raises(OrienteerError, match="Start all ranks with the same command") as refused:
        check_command(given[0], team)
    assert told in str(refused.value)
    given[1] = given[0]
    check_command(given[0], team)
