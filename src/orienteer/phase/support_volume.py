"""The volume that densities may fill, chosen by voxels that phasing has not seen.

A support that is too small forces errors into the density, and held-out voxels are foretold worse the smaller
it is.  One that is too large lets noise in, and far too large a one hides the density altogether.  So a few
starts are phased at each of many volumes, and the smallest volume is taken that foretells held-out voxels as
well as the best does: not worse by more than two standard errors of the difference.

This is done twice, the second time with small steps around the first choice.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orienteer.phase.batches import run_batches
from orienteer.phase.course import LARGEST_SUPPORT, Course
from orienteer.phase.held_out import Foretold, foretell
from orienteer.phase.schedule import parse_schedule

_SCHEDULE = parse_schedule("120*dm 60*raar(0.87) 20*er")
# From one volume to the next, at first and then around the choice.
_COARSE, _FINE = 1.5, 1.15
# Starts at each volume: one may fail, and two still tell how far good ones differ.
_STARTS = 3
# The number of the first start of all, which no start of a phasing has.
_NUMBER = 10**6
# Volumes that are tried, in those of a ball of the particle's diameter: soft bodies reach beyond what shows
# in the autocorrelation, and long ones fill little of the ball.
_LARGEST, _SMALLEST = 2.0, 0.03
# A volume is worse than the best where it is so by more standard errors than this.
_ERRORS = 2.0
# No support is smaller, in voxels.
LEAST_VOLUME = 8


@dataclass(frozen=True, eq=False)
class _Tried:
    """The best of some volumes.

    volume : the choice, in voxels; best : free log-likelihood of the best start of all.
    error : largest standard error of how far the score of a volume is below the best.
    """

    volume: float
    best: float
    error: float


def choose_volume(course: Course, seed: int, tell: Callable[[int, int], None]) -> float:
    """The smallest volume, in voxels, that foretells held-out voxels as well as any.

    tell : hears of the iterations that are done, and of all.
    """
    data = course.data
    ball = np.pi / 6 * (data.diameter_A / data.voxel_A) ** 3
    most = LARGEST_SUPPORT * data.n**3
    coarse = _falling(min(_LARGEST * ball, most), max(_SMALLEST * ball, LEAST_VOLUME), _COARSE)
    before = len(coarse) * _STARTS
    iterations = sum(phase.count for phase in _SCHEDULE)
    total = iterations * (before + _STARTS * len(_falling(_COARSE, 1 / _COARSE, _FINE)))
    rough = _try(course, coarse, _NUMBER, seed, lambda done: tell(done, total))
    fine = _falling(min(rough.volume * _COARSE, most), max(rough.volume / _COARSE, LEAST_VOLUME), _FINE)

    def heard(done: int) -> None:
        tell(min(iterations * before + done, total), total)

    choice = _try(course, fine, _NUMBER + before, seed, heard)
    return (choice if choice.best >= rough.best - rough.error else rough).volume


def _falling(largest: float, smallest: float, step: float) -> NDArray[np.float64]:
    number = 1 + max(0, round(np.log(largest / smallest) / np.log(step)))
    return np.geomspace(largest, min(smallest, largest), number)


def _try(
    course: Course, volumes: NDArray[np.float64], number: int, seed: int, tell: Callable[[int], None]
) -> _Tried:
    """The choice among falling volumes (K,) by some starts at each, the first of them of a number."""
    wanted, data = np.repeat(volumes, _STARTS), course.data
    numbers = range(number, number + len(wanted))
    parts = [
        foretell(state.density, state.background, data, data.choosing)
        for state in run_batches(course, _SCHEDULE, numbers, wanted, seed, tell)
    ]
    found = Foretold(np.concatenate([part.by_voxel for part in parts]), parts[0].counts, parts[0].speckle)
    scores = found.mean.reshape(-1, _STARTS)
    winners = scores.argmax(axis=1) + _STARTS * np.arange(len(volumes))
    found = Foretold(found.by_voxel[winners], found.counts, found.speckle)
    ranked = np.sort(scores, axis=1)
    chosen, error = smallest_as_good(found, float(np.median(ranked[:, -1] - ranked[:, -2])))
    return _Tried(float(volumes[chosen]), float(found.mean.max()), float(error.max()))


def smallest_as_good(found: Foretold, scatter: float = 0.0) -> tuple[int, NDArray[np.float64]]:
    """The last of falling volumes, counted from the best, before held-out voxels are foretold worse.

    What comes after it is not asked: where voxels tell little, some far smaller volume may do as well by
    chance, and would ruin the density.  A volume that is too large does no harm.

    scatter : by how much scores of good starts at one volume differ.
    Returns its number, and the standard error (K,) of how far each is below the best: it comes from the
    scatter of speckles, which are few, and from that of starts.
    """
    best = int(np.argmax(found.mean))
    below, by_speckles = found.below(best)
    error = np.hypot(by_speckles, scatter)
    worse = np.flatnonzero(below[best:] > _ERRORS * error[best:])
    return (best + int(worse[0]) - 1 if len(worse) else len(below) - 1), error
