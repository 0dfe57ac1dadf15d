"""Runs of a tiny method whose every number depends on all numbers before it."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from orienteer.run.checkpoint import LAST, read_checkpoint
from orienteer.run.run import Run

collect_ignore = ["on_ranks.py", "recurrence.py"]  # programs, which start faster without pytest
PROGRAM = Path(__file__).with_name("recurrence.py")
_spec = importlib.util.spec_from_file_location("recurrence", PROGRAM)
assert _spec is not None
assert _spec.loader is not None
recurrence = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(recurrence)


def outcome(path: Path) -> dict[str, Any]:
    """Everything that must not depend on where a run was stopped, in comparable form."""
    run = Run.open(path)
    checkpoint = read_checkpoint(path / LAST)
    return {
        "state": {k: v.tobytes() if isinstance(v, np.ndarray) else v for k, v in checkpoint.state.items()},
        "iteration": (checkpoint.iteration, checkpoint.finished, checkpoint.reason, run.reason),
        "steps": [{k: v for k, v in step.items() if k != "time"} for step in run.steps],
        "volumes": [volume.values.tobytes() for volume in run.volumes()],
        "orientations": {k: v.tobytes() for k, v in run.orientations().items()},
        "dragonfly": sorted(p.name for p in path.glob("dragonfly/*")),
        "left over": sorted(p.name for p in [*path.glob(".*"), *path.glob("*_new.h5")]),
    }


@pytest.fixture(scope="session")
def runs() -> SimpleNamespace:
    """What tests of runs share."""
    return SimpleNamespace(
        make=recurrence.make_run, outcome=outcome, source=recurrence.small_source, program=PROGRAM,
        method=recurrence.Recurrence,
    )  # fmt: skip


@pytest.fixture
def uninterrupted(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """The outcome of a run that nobody disturbed."""

    def carry_out(**settings: Any) -> dict[str, Any]:
        path = tmp_path / "uninterrupted"
        for _ in recurrence.make_run(path, **settings).iterate():
            pass
        return outcome(path)

    return carry_out
