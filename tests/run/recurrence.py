"""A tiny method whose every number depends on all numbers before it.

Run as a program, ``recurrence.py DIRECTORY KEY=VALUE ...`` carries out the run in that directory to its end.
"""

import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from orienteer.run.method import MethodKind, register_method
from orienteer.run.run import Run
from orienteer.run.signals import RunStopped
from orienteer.settings.section import Section
from orienteer.source.in_memory import InMemorySource
from orienteer.source.patterns import Patterns
from orienteer.volume.volume import Volume

N_FRAMES, EDGE = 12, 6


class RecurrenceSettings(Section):
    steps: int = Field(default=40, description="Steps to the end.")
    factor: float = Field(default=3.9, description="Of the logistic map, chaotic above 3.57.")
    models: int = Field(default=1, description="Models.")
    edge: int = Field(default=EDGE, description="Voxels along an edge.")
    step_s: float = Field(default=0.0, description="Seconds that a step takes.")
    slow_while: str = Field(default="", description="A file; when it is gone, no step takes long.")
    slow_from: int = Field(default=0, description="The first step that takes so long.")
    setup_s: float = Field(default=0.0, description="Seconds that it takes before the first step.")
    state_s: float = Field(default=0.0, description="Seconds that the state takes.")
    failing_step: int = Field(default=0, description="The step that fails; 0: none.")
    dragonfly_output: bool = Field(default=False, description="Write Dragonfly's files, too.")
    limit: int = Field(default=0, description="Steps after which it is over all the same; 0: none.")
    stir_file: str = Field(default="", description="A file with another number to stir with.")
    may_change: ClassVar[frozenset[str]] = frozenset({"limit", "dragonfly_output"})


@dataclass(frozen=True)
class RecurrenceStep:
    iteration: int
    change: float
    n_rotations: int
    radial: dict[str, Any]


class Recurrence:
    """The logistic map in every voxel, stirred by random numbers and by the data."""

    def __init__(self, source: Any, settings: RecurrenceSettings, seed: int, device: str) -> None:
        self.settings = settings
        self.iteration = 0
        end = time.monotonic() + settings.setup_s
        while time.monotonic() < end and Path(settings.slow_while or ".").exists():
            time.sleep(0.01)
        self._events = source.event_ids()
        self._stir = float(source.read().dense().mean())
        if settings.stir_file:
            self._stir = float(Path(settings.stir_file).read_text())
        self._random = np.random.default_rng(seed)
        self._models = self._random.random((settings.models, *[settings.edge] * 3), dtype=np.float32)

    @property
    def finished(self) -> bool:
        return self.at_limit or self.iteration >= self.settings.steps

    @property
    def at_limit(self) -> bool:
        return 0 < self.settings.limit <= self.iteration < self.settings.steps

    @property
    def reason(self) -> str:
        if self.at_limit:
            return "The limit is reached."
        return "All steps are done." if self.finished else ""

    def step(self) -> RecurrenceStep:
        if self.iteration + 1 == self.settings.failing_step:
            raise ZeroDivisionError("the step fails")
        before = self._models.copy()
        np.multiply(self._models, np.float32(self.settings.factor) * (1 - self._models), out=self._models)
        end = time.monotonic() + (
            self.settings.step_s if self.iteration + 1 >= self.settings.slow_from else 0
        )
        is_slow = Path(self.settings.slow_while or ".").exists
        while (
            time.monotonic() < end and is_slow()
        ):  # half of the change is made: an abandoned step must not be kept
            time.sleep(0.01)
        draw = self._random.random(self._models.shape, dtype=np.float32)
        self._models += np.float32(1e-3 * self._stir) * (draw - self._models)
        self.iteration += 1
        change = float(np.sqrt(((self._models - before) ** 2).mean()))
        radial = {"q_inv_A": np.arange(3) / 10, "intensity": [change, float("nan"), 1.0]}
        return RecurrenceStep(self.iteration, change, 60, radial)

    def state(self) -> dict[str, Any]:
        time.sleep(self.settings.state_s)
        return {
            "model/values": self._models,
            "iteration": self.iteration,
            "random/state": repr(self._random.bit_generator.state),
        }

    def restore(self, state: Any) -> None:
        self._models = np.array(state["model/values"])
        self.iteration = state["iteration"]
        self._random.bit_generator.state = eval(state["random/state"])

    def volumes(self) -> list[Volume]:
        return [Volume(model, 1e-3, "reciprocal", name=f"model {m}") for m, model in enumerate(self._models)]

    def orientations(self) -> dict[str, Any]:
        quaternion = np.resize(self._models.astype(np.float64), (N_FRAMES, 4)) + 0.1
        return {
            "event_id": self._events,
            "quaternion": quaternion / np.linalg.norm(quaternion, axis=1, keepdims=True),
            "fluence": np.resize(self._models, N_FRAMES),
            "model": np.arange(N_FRAMES) % self.settings.models,
            "perplexity": np.full(N_FRAMES, 6.0),
        }


register_method(MethodKind("recurrence", RecurrenceSettings, Recurrence))


def small_source(value: int = 1, n_frames: int = N_FRAMES) -> InMemorySource:
    frames = np.arange(n_frames * 9).reshape(n_frames, 9) % 7 * value
    return InMemorySource(Patterns(frames, np.arange(n_frames) + 100), (3, 3))


def make_run(path: Path, *, source: Any = None, seed: int = 3, restart: bool = False, **settings: Any) -> Run:
    return Run.create(
        path,
        small_source() if source is None else source,
        RecurrenceSettings(**settings),
        seed=seed,
        device="cpu",
        method="recurrence",
        restart=restart,
    )


if __name__ == "__main__":
    import tomllib

    given = tomllib.loads("\n".join(sys.argv[2:]))
    try:
        for done in make_run(Path(sys.argv[1]), **given).iterate():
            print(done.iteration, flush=True)
    except RunStopped as stopped:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # as the command does when it leaves
        print(stopped, file=sys.stderr)
        sys.exit(stopped.exit_status)
