"""The halves first: the run of all frames then begins with what they have found, and not at random.

Two halves that have come to the same structure from random starts of their own have done all of the search.
The run of all frames only has to orient them against that map, on the finest grid, a few times.  The halves
know nothing of it, so that their agreement proves as much as before.  Inside of the run, too, frames go on to
be oriented by a model that has not seen them: a hash of the event parts the frames of every run in the same
way, and the map of a half has a model for each part.

Where the halves do not show the same, the run begins at random, as it would by itself.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from orienteer.errors import OrienteerError
from orienteer.reconstruction.emc import Emc
from orienteer.reconstruction.handing_over import begin_from
from orienteer.run.crew import crew
from orienteer.run.directory import RunDirectory
from orienteer.run.known_orientations import known_orientations_in_words
from orienteer.validate.half_runs import iterate_halves
from orienteer.validate.kept_maps import HalfMap, place_of_map

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orienteer.compute.arrays import DeviceName
    from orienteer.reconstruction.course.ladder import Stage
    from orienteer.run.method import Method
    from orienteer.run.run import Run
    from orienteer.validate.halves import Halves
    from orienteer.validate.side_by_side import SideBySide


def can_begin_with_halves(run: Run) -> bool:
    """Whether all that a run needs to begin with is in the map of a half, and it has not begun yet."""
    section = run.settings
    return (
        run.method == "emc"
        and crew().is_alone
        and section.models == 1
        and section.junk_classes == 0
        and section.background == "given"
        and not known_orientations_in_words(dict(section))
        and not run.iteration
    )


def begin_with_halves(run: Run, halves: Halves, at_work: SideBySide | None = None) -> bool:
    """Bring the halves of a run to their end and let the run begin with the map of one of them.

    halves : of :func:`begin_halves`, which must be told that they lead.
    at_work : processes that work on the halves.
    Returns whether this call lets the run begin with what the halves show.  One that has begun already, with
    them or otherwise, goes on as it is, and the answer is False.
    """
    if not can_begin_with_halves(run):
        return False
    if at_work is None or not at_work.is_at_work:
        for _ in iterate_halves(halves.runs):
            pass
    is_begun = False

    def begin(method: Method) -> None:
        nonlocal is_begun
        assert isinstance(method, Emc)
        if at_work is not None:
            at_work.wait_until(
                lambda: all(place_of_map(half).exists() and half.finished for half in halves.runs)
            )
        for _ in iterate_halves(halves.runs):  # what a process has left undone
            pass
        try:
            found = common_map(halves, method.device)
        except OrienteerError as error:
            method.remarks.append(f"The halves lead nobody, and this run begins at random: {error.message}")
            return
        if found is not None:
            begin_from(method, found.learnt, stage_for(found, method.stages))
            method.course.has_start = True
            if method.settings.refine:
                method.course.led_stage = method.course.stage
            method.remarks.append("This run begins with the map on which two halves of its frames agree.")
            is_begun = True

    if at_work is not None:  # they come to the card first, and this run makes itself ready meanwhile
        at_work.wait_until(lambda: all(RunDirectory(half.path).events.exists() for half in halves.runs))
    run.begin_with(begin)
    for half in halves.runs:
        place_of_map(half).unlink(missing_ok=True)
    return is_begun


def common_map(halves: Halves, device: DeviceName) -> HalfMap | None:
    """The map of the half whose frames were oriented at the finer resolution; None: they show not the same.

    It lies as that half does.  A mean of both would have less noise, and be blurred by the turn.
    A half whose map is lost is an OrienteerError.
    """
    with ThreadPoolExecutor(max_workers=1) as pool:
        reading = pool.submit(lambda: [halves.map_of(half, device) for half in range(2)])
        if not all(place_of_map(half).exists() for half in halves.runs):
            reading.result()  # it is made again, and what the half says comes with it
        models = [halves.asked(half, device) for half in range(2)]
        if halves.agreement((0, 0), models, device).agrees_to_A is None:
            return None
        return max(reading.result(), key=lambda one: one.scored_inv_A)


def stage_for(found: HalfMap, stages: Sequence[Stage]) -> int:
    """The last stage that orients frames at no finer resolution than the half did.

    Runs differ a little in the diameter that they find, and so in the radii between the first and the last.
    """
    reached = [stage.scored_inv_A <= found.scored_inv_A * (1 + 1e-6) for stage in stages]
    return max((number for number, is_reached in enumerate(reached) if is_reached), default=0)
