"""The :class:`Step` that an iteration reports, collected from the state of the run."""

import time
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from orienteer.reconstruction.course.course import Progress
from orienteer.reconstruction.course.time_left import seconds_left
from orienteer.reconstruction.results import agreement_A, radial_summary
from orienteer.reconstruction.states.summary import state_summaries
from orienteer.reconstruction.step import Step
from orienteer.reconstruction.workspace import Workspace

if TYPE_CHECKING:
    from orienteer.reconstruction.emc import Emc


def told(
    emc: "Emc", work: Workspace, judging: NDArray[np.bool_], now: Progress, beta: float, began: float,
    sent_before: int,
) -> Step:  # fmt: skip
    """The step of an iteration, made before the next stage or start begins; its note is still empty.

    work : the workspace of the iteration.
    judging : (N,) bool, frames whose evidence counts.
    beta : inverse temperature of a frame of mean fluence.
    began : time of the monotonic clock when the iteration began.
    sent_before : bytes that this rank had sent until then.
    """
    course, annealing, stage = emc.course, emc.annealing, work.stage
    seconds = time.monotonic() - began
    radial = radial_summary(emc.half_correlation, emc.radial_mean, stage.voxel_inv_A, stage.merged_inv_A)
    has_halves = emc.n_halves == 2
    if not has_halves:  # without halves it would be 1 everywhere, which says nothing
        del radial["half_correlation"]
    watch = emc.watch if emc.watch is not None and emc.watch.is_by_halves else None
    return Step(
        iteration=course.iteration,
        log_likelihood=now.log_likelihood,
        change=now.change,
        inverse_temperature=min(beta, 1.0),
        perplexity=emc.table.mean_perplexity(judging),
        grid_level=stage.level,
        n_rotations=work.n_poses,
        resolution_A=now.resolution_A,
        agrees_to_A=agreement_A(radial) if has_halves and course.has_settled else None,
        sentinel_agreement_deg=None if watch is None else watch.agreement_deg,
        sentinel_gain_nats=None if watch is None else watch.gain_nats,
        half_correlation=now.agreement,
        seconds=seconds,
        seconds_left=seconds_left(
            seconds, course, annealing, emc.stages, emc.pixels, emc.settings.given_group.order,
            now.perplexity, emc.n_models, emc.growth.expected(emc.n_models),
        ),
        photons_merged=float(emc.frames.photons[judging].sum()),
        stage=course.stage + 1,
        n_stages=course.n_stages,
        start=course.start + 1,
        finished=course.finished,
        reason=course.reason,
        states=state_summaries(emc),
        symmetry=emc.group.name,
        sent_bytes=emc.mesh.all.sum(emc.mesh.sent_bytes - sent_before),
        radial=radial,
    )  # fmt: skip
