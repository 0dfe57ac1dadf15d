"""Halves first: reconstruct the halves before the run of all frames, which then begins with their map.

If two halves have found the same structure from random starts of their own, the search is done.  The run of
all frames only has to orient its frames by that map, on the finest grid, a few times.  The halves use nothing
of the run, so their agreement proves as much as before.  Inside the run, too, each frame is still oriented by
a model that has not seen it: a hash of the event id divides the frames of every run into the same two sets,
and the map of a half has a model for each set.

If the halves do not show the same structure, the run begins at random, as it would without them.
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
    """Whether the map of a half holds all that the run needs for a start, and the run has no step yet."""
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
    """Finish the halves of a run, and let the run begin with the map of one of them.

    halves : from :func:`begin_halves` with ``lead``.
    at_work : processes that work on the halves.
    Returns whether this call has made the run begin with such a map.  A run that has already begun, in
    whatever way, goes on as it is; the answer is then False.
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
        for _ in iterate_halves(halves.runs):  # steps that a failed process has left
            pass
        try:
            found = common_map(halves, method.device)
        except OrienteerError as error:
            method.remarks.append(f"The halves give no map, so this run begins at random: {error.message}")
            return
        if found is not None:
            begin_from(method, found.learnt, stage_for(found, method.stages))
            method.course.has_start = True
            if method.settings.refine:
                method.course.led_stage = method.course.stage
            method.remarks.append("This run begins with the map on which two halves of its frames agree.")
            is_begun = True

    if at_work is not None:  # let the halves begin on the GPU first; this run prepares itself meanwhile
        at_work.wait_until(lambda: all(RunDirectory(half.path).events.exists() for half in halves.runs))
    run.begin_with(begin)
    for half in halves.runs:
        place_of_map(half).unlink(missing_ok=True)
    return is_begun


def common_map(halves: Halves, device: DeviceName) -> HalfMap | None:
    """The map of the half whose frames were oriented at the finer resolution; None if the halves disagree.

    It has the orientation of that half.  A mean of both maps would have less noise, but be blurred by the
    rotation of one onto the other.  If the map of a half is lost, an OrienteerError is raised.
    """
    with ThreadPoolExecutor(max_workers=1) as pool:
        reading = pool.submit(lambda: [halves.map_of(half, device) for half in range(2)])
        if not all(place_of_map(half).exists() for half in halves.runs):
            reading.result()  # makes the map again, and with it the findings of the half
        models = [halves.asked(half, device) for half in range(2)]
        if halves.agreement((0, 0), models, device).agrees_to_A is None:
            return None
        return max(reading.result(), key=lambda one: one.scored_inv_A)


def stage_for(found: HalfMap, stages: Sequence[Stage]) -> int:
    """The last stage that orients frames at no finer resolution than the half did.

    Resolutions must be compared, not numbers of stages: runs find slightly different diameters, which shift
    the radii of the stages between the first and the last.
    """
    reached = [stage.scored_inv_A <= found.scored_inv_A * (1 + 1e-6) for stage in stages]
    return max((number for number, is_reached in enumerate(reached) if is_reached), default=0)
