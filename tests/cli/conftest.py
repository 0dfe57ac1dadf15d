"""The command line, run in this process as a user would run it, and a reconstruction that takes no time."""

import json
import os
import signal
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from pydantic import ConfigDict

from orienteer.cli.main import main
from orienteer.orientation.quaternion import random_uniform
from orienteer.reconstruction.settings import EmcSettings
from orienteer.run import method
from orienteer.settings.section import Section
from orienteer.volume.volume import Volume


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
def run(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> Run:
    """``run("simulate", "--frames", 3)`` in an empty folder, with its exit status and what it printed."""
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
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


class FakeSettings(Section):
    """The setting that a picture needs; others are not looked at."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    symmetry: str = "C1"
    may_change: ClassVar[frozenset[str]] = EmcSettings.may_change


@dataclass(frozen=True)
class FakeStep:
    iteration: int
    log_likelihood: float
    finished: bool
    reason: str
    stage: int = 1
    n_stages: int = 2
    change: float = 0.1
    inverse_temperature: float = 0.5
    perplexity: float = 10.0
    grid_level: int = 4
    n_rotations: int = 3240
    resolution_A: float = 25.0
    agrees_to_A: float | None = 31.0
    symmetry: str = "I"
    sentinel_agreement_deg: float | None = 4.0
    half_correlation: float = 0.8
    seconds: float = 0.01
    seconds_left: float | None = 1.0
    photons_merged: float = 1e4
    radial: dict[str, Any] = field(
        default_factory=lambda: {
            "q_inv_A": [0.01, 0.02],
            "intensity": [9.0, 1.0],
            "half_correlation": [1.0, 0.5],
        }
    )


class FakeMethod:
    """A recurrence x <- 3.7 x (1 - x), so that a step too many or too few shows."""

    settings = FakeSettings
    n_steps = 5
    stop_after: int | None = None
    stop_with = signal.SIGINT

    def __init__(self, source: Any, settings: Any, seed: int, device: str) -> None:
        self.event_ids = source.event_ids()
        self.x = 0.1 + seed / 1000
        self.iteration = 0

    @property
    def finished(self) -> bool:
        return self.iteration >= self.n_steps

    @property
    def reason(self) -> str:
        return "The intensity no longer changes." if self.finished else ""

    def step(self) -> FakeStep:
        self.x = 3.7 * self.x * (1 - self.x)
        self.iteration += 1
        if self.iteration == self.stop_after:
            os.kill(os.getpid(), self.stop_with)
        return FakeStep(self.iteration, self.x, self.finished, self.reason)

    def state(self) -> dict[str, Any]:
        return {"x": self.x, "iteration": self.iteration}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.x, self.iteration = state["x"], state["iteration"]

    def volumes(self) -> list[Volume]:
        return [Volume(np.full((5, 5, 5), self.x), 0.01, "reciprocal")]

    def orientations(self) -> dict[str, Any]:
        n = len(self.event_ids)
        columns = {"event_id": self.event_ids, "quaternion": random_uniform(n, 1), "fluence": np.ones(n)}
        zeros = {name: np.zeros(n) for name in ("confidence", "log_likelihood", "perplexity")}
        return columns | zeros | {name: np.zeros(n, np.int64) for name in ("model", "half")}


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> type[FakeMethod]:
    """A class of one's own to change, known as the method "emc"."""
    kind = type("Fake", (FakeMethod,), {})
    monkeypatch.setattr(method, "_registered", {"emc": method.MethodKind("emc", FakeSettings, kind)})
    return kind
