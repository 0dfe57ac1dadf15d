"""From frames to a validated density in one go: the halves, the run, its density and its validation.

::

    run = Run.create(folder, frames)
    density, validation = go_the_whole_way(run)

It gives the results of ``orienteer reconstruct``, ``phase`` and ``validate`` in less time: the run begins
with the map of the halves (``halves_first.py``), and on a GPU with enough memory both halves are
reconstructed at the same time, and compared while the run is phased.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from orienteer.reconstruction.stopwatch import part
from orienteer.run.validation_settings import ValidationSettings
from orienteer.validate.half_phasing import phase_run
from orienteer.validate.halves import begin_halves
from orienteer.validate.halves_first import begin_with_halves, can_begin_with_halves
from orienteer.validate.side_by_side import SideBySide
from orienteer.validate.validation import validate

if TYPE_CHECKING:
    from orienteer.compute.arrays import DeviceName
    from orienteer.phase.result import Phasing
    from orienteer.phase.settings import PhaseSettings
    from orienteer.run.run import Run
    from orienteer.validate.result import Validation

# Stages that a stopwatch times in addition to the parts of the validation.
STAGES = ("begin", "halves first", "reconstruct", "phase", "validate")


def go_the_whole_way(
    run: Run, settings: ValidationSettings | None = None, phasing: PhaseSettings | None = None,
    *, device: DeviceName | None = None,
) -> tuple[Phasing, Validation]:  # fmt: skip
    """The density of a run and its validation; work that was done before is not repeated.

    run : begun or not; it goes on from its state.
    phasing : how the run and both halves are phased.
    device : where to compute; by default the device of the run.
    """
    settings, device = settings or ValidationSettings(), run.device if device is None else device
    with part("begin"):
        at_work = SideBySide.beginning(run, settings, phasing, device, lead=True)
        halves = at_work.halves
        if halves is None and can_begin_with_halves(run):
            halves = begin_halves(run, settings, device, beside=True, lead=True)
    with at_work:
        if halves is not None:
            with part("halves first"):
                begin_with_halves(run, halves, at_work)
        with part("reconstruct"):
            for _ in run.iterate():
                pass
        with part("phase"):
            if not at_work.go_on_with_whole():
                phase_run(run, phasing, device)
        with part("validate"):
            found = validate(run, settings, phasing, device=device, halves=halves, at_work=at_work)
        with part("phase"):  # opens the density that another process has made
            density = phase_run(run, phasing, device)
    return density, found
