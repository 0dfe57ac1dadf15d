"""The volume of the support, chosen by voxels that phasing has not seen.

A support that is too small forces errors into the density, and held-out voxels are foretold worse the smaller
it is.  One that is too large lets noise in, which costs little.  So a few starts shrink their supports step
by step, and the smallest volume is taken at which held-out voxels are foretold about as well as ever.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from orienteer.phase.course import FIRST_BLUR, LAST_BLUR, Course
from orienteer.phase.held_out import free_log_likelihood
from orienteer.phase.iterations import er, raar
from orienteer.phase.state import PhaseState

# Starts that are shrunk, and the number of the first of them, which no start of a phasing has.
_STARTS, _NUMBER = 4, 10**6
# Iterations before the first step, and at each step.
_FIRST, _EACH = 100, 20
# Iterations of error reduction before a density is judged.
_POLISH = 5
# Volume of a step over that of the step before, and the smallest one over the first.
_STEP, _LEAST = 0.96, 1 / 60
# The mean log-likelihood of held-out voxels may be this much below the best, in nats.
_TOLERANCE = 0.05
# Where it has been this much below the best for some steps, the support is far too small.
_HOPELESS, _STEPS_WITHOUT_HOPE = 0.5, 5
_RAAR = 0.87
# No support is smaller, in voxels; one chosen nearer to the first than this leaves doubt whether that is enough.
_SMALLEST, _TOO_NEAR = 8, 0.7


@dataclass(frozen=True, eq=False)
class VolumeChoice:
    """The volume of the support in voxels, and what was tried.

    volumes : (K,) float64, falling; score : (K,) float64, free log-likelihood of the best start at each volume.
    """

    volume: float
    volumes: NDArray[np.float64]
    score: NDArray[np.float64]


def choose_volume(course: Course, seed: int, tell: Callable[[int, int], None]) -> tuple[Course, VolumeChoice]:
    """Shrink the supports of a few starts until held-out voxels say that they are too small.

    Returns the choice, and the course, whose first support is larger where the given one was too small.
    tell : hears of the steps that are done, and the most there can be.
    """
    while True:
        choice = _knee(*_shrink(course, seed, tell))
        larger = course.enlarged() if choice.volume > _TOO_NEAR * course.first_volume else None
        if larger is None:
            return course, choice
        course = larger


def _shrink(
    course: Course, seed: int, tell: Callable[[int, int], None]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Volumes (K,) of ever smaller supports, and the best free log-likelihood at each."""
    most = int(np.ceil(np.log(_LEAST) / np.log(_STEP)))
    state = course.start(range(_NUMBER, _NUMBER + _STARTS), np.full(_STARTS, course.first_volume), seed)
    volumes: list[float] = []
    scores: list[float] = []
    for step in range(most):
        volume = course.first_volume * _STEP**step
        if volume < _SMALLEST:
            break
        for _ in range(_EACH if step else _FIRST):
            raar(state, course.data, _RAAR)
        blur = max(LAST_BLUR, FIRST_BLUR - 0.05 * step)
        course.renew(state, np.full(_STARTS, volume), blur)
        found = _judge(state, course)
        volumes.append(volume)
        scores.append(float(found.max()))
        tell(step + 1, most)
        recent = scores[-_STEPS_WITHOUT_HOPE:]
        if len(scores) > 2 * _STEPS_WITHOUT_HOPE and max(recent) < max(scores) - _HOPELESS:
            break
    return np.array(volumes), np.array(scores)


def _judge(state: PhaseState, course: Course) -> NDArray[np.float64]:
    """Free log-likelihood (B,) of the densities behind the iterates, which a few steps of ER bring out."""
    course.fit_background(state)
    copy = replace(state, density=state.density.copy())
    for _ in range(_POLISH):
        er(copy, course.data)
    return free_log_likelihood(course.estimate(copy), copy.background, course.data)


def _knee(volumes: NDArray[np.float64], score: NDArray[np.float64]) -> VolumeChoice:
    """The smallest volume that is about as good as the best one and lies below it."""
    good = score >= score.max() - _TOLERANCE
    return VolumeChoice(float(volumes[np.flatnonzero(good)[-1]]), volumes, score)
