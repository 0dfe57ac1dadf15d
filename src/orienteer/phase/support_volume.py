"""The volume of the support, chosen by voxels that phasing has not seen.

A support that is too small forces errors into the density, and held-out voxels are foretold worse the smaller
it is.  One that is too large lets noise in, which costs little.  So a few starts shrink their supports step
by step, and the smallest volume is taken at which held-out voxels are foretold about as well as ever.

This is done twice.  The difference map finds the density from any start, but is never at rest: it tells the
volume roughly.  From there RAAR, which settles, tells it well.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from orienteer.phase.course import FIRST_BLUR, LARGEST_SUPPORT, LAST_BLUR, Course
from orienteer.phase.held_out import free_log_likelihood
from orienteer.phase.iterations import METHODS, er
from orienteer.phase.schedule import Phase
from orienteer.phase.state import PhaseState

# Starts that are shrunk, and the number of the first of them, which no start of a phasing has.
_STARTS, _NUMBER = 4, 10**6
# No support is smaller, in voxels.
_SMALLEST = 8
# Where the score has been this much below the best for some steps, the support is far too small.
_HOPELESS, _STEPS_WITHOUT_HOPE = 0.4, 4
# The volume is looked for again from this many times the one that was found.
_AGAIN_FROM = 2.2
# A choice of this share of the first volume is near to it.
_NEAR = 0.9


@dataclass(frozen=True)
class _Shrinking:
    """How supports are shrunk.

    first : iterations before the first step; each : at each step, of method and beta.
    step : volume of a step over that of the one before; polish : error reduction before a density is judged.
    tolerance : nats that the mean log-likelihood may be below the best.
    """

    each: Phase
    first: int
    step: float
    polish: int
    tolerance: float


_ROUGH = _Shrinking(Phase("dm", 1.0, 20), first=100, step=0.95, polish=5, tolerance=0.15)
_WELL = _Shrinking(Phase("raar", 0.87, 20), first=100, step=0.97, polish=15, tolerance=0.02)
_MOST_STEPS = 90


@dataclass(frozen=True, eq=False)
class VolumeChoice:
    """The volume of the support in voxels, and what was tried.

    volumes : (K,) float64, falling.
    score : (K,) float64, free log-likelihood of the best start at each volume.
    """

    volume: float
    volumes: NDArray[np.float64]
    score: NDArray[np.float64]


def choose_volume(course: Course, seed: int, tell: Callable[[int, int], None]) -> VolumeChoice:
    """Shrink the supports of a few starts until held-out voxels say that they are too small.

    tell : hears of the steps that are done, and the most there can be.
    """
    largest = LARGEST_SUPPORT * course.data.n**3
    numbers = range(_NUMBER, _NUMBER + _STARTS)
    tried = []
    while True:
        state = course.start(numbers, np.full(_STARTS, course.first_volume), seed)
        tried.append(_shrink(state, course, _ROUGH, course.first_volume, tell))
        # Where the choice lies near the first volume, that may have been too small for the particle.
        if tried[-1][0].volume < _NEAR * course.first_volume or 2 * course.first_volume > largest:
            break
        course = course.of_volume(2 * course.first_volume)
    choice, state = max(tried, key=lambda each: each[0].score.max())
    found: VolumeChoice | None = None
    while True:
        first = min(_AGAIN_FROM * choice.volume, largest)
        choice, state = _shrink(state, course, _WELL, first, lambda done, most: tell(done + most // 2, most))
        if found is not None and choice.score.max() < found.score.max() + _WELL.tolerance:
            return found
        found = choice
        if choice.volume < _NEAR * first or first >= largest:
            return found


def _shrink(
    state: PhaseState, course: Course, how: _Shrinking, first: float, tell: Callable[[int, int], None]
) -> tuple[VolumeChoice, PhaseState]:
    """The choice among ever smaller volumes from ``first`` on, and the state at the best of them."""
    volumes: list[float] = []
    scores: list[float] = []
    best = state
    for step in range(_MOST_STEPS):
        volume = np.full(state.n_starts, first * how.step**step)
        if volume[0] < _SMALLEST:
            break
        for _ in range(how.each.count if step else how.first):
            METHODS[how.each.method](state, course.data, how.each.beta)
        course.renew(state, volume, max(LAST_BLUR, FIRST_BLUR - 0.05 * step), step)
        course.fit_background(state)
        found = _judge(state, course, how.polish)
        volumes.append(float(volume[0]))
        scores.append(float(found.max()))
        if scores[-1] == max(scores):
            best = state.copy()
        tell(step + 1, 2 * _MOST_STEPS)
        recent = scores[-_STEPS_WITHOUT_HOPE:]
        if step >= 2 * _STEPS_WITHOUT_HOPE and max(recent) < max(scores) - _HOPELESS:
            break
    tried, score = np.array(volumes), np.array(scores)
    good = np.flatnonzero(score >= score.max() - how.tolerance)
    return VolumeChoice(float(tried[good[-1]]), tried, score), best


def _judge(state: PhaseState, course: Course, polish: int) -> NDArray[np.float64]:
    """Free log-likelihood (B,) of the densities behind the iterates, which error reduction brings out."""
    copy = replace(state, density=state.density.copy())
    for _ in range(polish):
        er(copy, course.data)
    return free_log_likelihood(course.estimate(copy), copy.background, course.data)
