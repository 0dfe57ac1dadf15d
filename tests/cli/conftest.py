"""The command line, run in this process as a user would run it."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from orienteer.cli.main import main


@dataclass(frozen=True)
class Result:
    status: int
    output: str
    errors: str

    @property
    def json(self) -> Any:
        return json.loads(self.output)


Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """``run("simulate", "--frames", 3)`` in an empty folder, with its exit status and what it printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def command(*arguments: object) -> Result:
        monkeypatch.setattr(sys, "argv", ["orienteer", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as leaving:
            main()
        printed = capsys.readouterr()
        return Result(int(leaving.value.code or 0), printed.out, printed.err)

    return command


@pytest.fixture
def frames(run: Run) -> Path:
    """A small simulated data set in the current folder."""
    result = run(
        "simulate",
        "sphere",
        "--frames",
        12,
        "--photons-per-frame",
        200,
        "--set",
        "detector.pixels=24",
        "--out",
        "frames.h5",
    )
    assert result.status == 0, result.errors
    return Path("frames.h5")
