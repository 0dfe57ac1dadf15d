"""Two runs that share no information, one for each half of the frames.

Their folders, ``validation/half_1`` and ``validation/half_2``, are inside that of the validated run.  They
are ordinary runs, which can be stopped, resumed and looked at.  Each has its own seed, its own random start,
its own estimate of the size of the particle, its own search for a symmetry (if none is given) and its own
choice of frames.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from orienteer.run.files import VALIDATION
from orienteer.run.run import Run
from orienteer.validate.half_sets import Parts
from orienteer.validate.independence import check_independence, facts_of

if TYPE_CHECKING:
    from pathlib import Path

    from orienteer.compute.arrays import DeviceName
    from orienteer.run.method import Step

# "half" in ASCII: keeps these seeds different from all others that are drawn from the seed of a run.
_SPAWN_KEY = 0x68616C66


class HalfStep(NamedTuple):
    """A step of one of the halves.  half : 1 or 2."""

    half: int
    step: Step


def half_seed(seed: int, half: int) -> int:
    """The seed of a half, 1 or 2, drawn from that of the run.

    >>> half_seed(0, 1) != half_seed(0, 2)
    True
    """
    state = np.random.SeedSequence(seed, spawn_key=(_SPAWN_KEY, half)).generate_state(1, np.uint32)
    return int(state[0])


def half_runs(
    run: Run,
    parts: Parts,
    folder: Path | None = None,
    device: DeviceName | None = None,
    restart: bool = False,
) -> tuple[Run, Run]:
    """Begin the runs of the two halves with the settings of a run, or open those that were begun.

    parts : its data in halves.
    folder : for both; by default ``validation`` in the folder of the run.
    device : where to compute; by default the device of the run.
    restart : begin anew, and lose what the halves have done.
    """
    place = run.path / VALIDATION if folder is None else folder
    section = run.settings
    if getattr(section, "models", 1) == "auto":  # a half looks for as many states as the run has found
        section = section.model_copy(update={"models": len(run.volumes())})
    if getattr(section, "dragonfly_output", False):
        section = section.model_copy(update={"dragonfly_output": False})
    first, second = (
        Run.create(
            place / f"half_{half}", part, section, seed=half_seed(run.seed, half), method=run.method,
            device=run.device if device is None else device, restart=restart,
        )
        for half, part in ((1, parts.half_1), (2, parts.half_2))
    )  # fmt: skip
    check_independence(facts_of(first, parts.half_1.event_ids()), facts_of(second, parts.half_2.event_ids()))
    return first, second


def iterate_halves(runs: tuple[Run, Run]) -> Generator[HalfStep]:
    """Do the remaining steps, one half after the other; can be stopped and resumed like any run."""
    for half, run in enumerate(runs, start=1):
        with closing(run.iterate()) as steps:
            for step in steps:
                yield HalfStep(half, step)
