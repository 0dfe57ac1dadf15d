"""The volume of the support, chosen by voxels that phasing has not seen.

A support that is too small forces errors into the density, which then predicts held-out voxels badly.  One
that is too large lets noise in, and one that is far too large hides the density altogether.  So a few starts
go down from a large volume to smaller ones, and the smallest volume is chosen that predicts held-out voxels
as well as the best: not worse by more than two standard errors of the difference, nor by more than a factor
of two in the errors themselves.

Held-out voxels are few.  For a symmetric particle nearly all of them are copies of one speckle, which a wrong
density may predict by chance.  The voxels used in phasing are many more, and no density inside a support that
is too small fits them.  More room always fits them better, because noise is fitted too; so a volume is
refused if a larger one fits better by more than its additional unknowns explain.

Starts keep their densities when the volume falls.  Even so they may lose the density at some volume and find
it again at a smaller one; this shows, because more room always fits better, and such a volume is passed over.
So is one so large that it fits noise: a smaller one fits as well if the unknowns are counted.
If they find none at all, other starts go down.  The steps are large at first, and go on until several volumes
in a row are worse.  Then the starts as they were at the choice go down once more from a little above it, in
small steps, and choose again: they have found the density, so that only the volume makes a difference.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, array_namespace
from orienteer.phase.batches import starts_at_once
from orienteer.phase.course import FIRST_BLUR, LARGEST_SUPPORT, LAST_BLUR, Course
from orienteer.phase.data import PhasingData
from orienteer.phase.held_out import Predicted, joined, predict
from orienteer.phase.iterations import METHODS
from orienteer.phase.schedule import Phase
from orienteer.phase.smallest_volume import (
    MUCH_WORSE,
    WORSE,
    are_passed_over,
    are_too_small,
    smallest_as_good,
)
from orienteer.phase.state import PhaseState

# Iterations at each volume; those at a volume at which the difference map has led starts that had the density
# away from it; and then, on a copy, before that is judged.
_SEARCHING = (Phase("dm", 1.0, 40), Phase("raar", 0.87, 20))
_KEEPING = (Phase("raar", 0.87, 60),)
_BEFORE_JUDGED = (Phase("er", 0.0, 10),)
# Ratio of one volume to the next, in large and in small steps; the small ones begin at _FROM times the first
# choice.
_COARSE, _FINE, _FROM = 1.5, 1.17, 1.22
# Volumes that must be tried below the choice before the search ends, in large steps and in small ones.
_BELOW, _BELOW_IN_SMALL_STEPS = 3, 2
# Most small steps; all of them together divide the volume by about six.
_MOST_SMALL_STEPS = 12
# How often starts go down at most: others follow if those before found no density, or only a part of it.  A
# density explains amplitudes by this many nats better than the mean of each shell does.  (Without one, starts
# came to 0.3, or to 0.56 by chance, and with one mostly to 0.7 and more.)
_ATTEMPTS, _FOUND = 2, 0.6
# Number of starts: some may fail, and at least two good ones are needed to see how much good ones differ.
_STARTS = 5
# Volumes after which supports have their final sharpness, and backgrounds are fitted.
_SHARP = 3.0
# Number of the first start here; it exceeds all numbers of a phasing's starts, whose random draws so differ.
_NUMBER = 10**6
# Range of volumes, relative to the ball of the particle's diameter: soft bodies reach beyond the diameter
# that the autocorrelation shows, and long ones fill little of the ball.
_LARGEST, _SMALLEST = 2.0, 0.03
# Smallest support, in voxels.
LEAST_VOLUME = 8


def choose_volume(course: Course, seed: int, tell: Callable[[int, int], None]) -> float:
    """The smallest volume, in voxels, that predicts held-out voxels as well as the best.

    tell : called with the number of iterations done, and their total.
    """
    data = course.data
    ball = np.pi / 6 * (data.diameter_A / data.voxel_A) ** 3
    most = LARGEST_SUPPORT * data.n**3
    coarse = falling(min(_LARGEST * ball, most), max(_SMALLEST * ball, LEAST_VOLUME), _COARSE)
    n_starts = max(2, starts_at_once(data, _STARTS))
    each = n_starts * sum(phase.count for phase in (*_SEARCHING, *_BEFORE_JUDGED))
    most_coarse = _ATTEMPTS * len(coarse)
    total = each * (most_coarse + _MOST_SMALL_STEPS)
    way = _best_way_down(course, coarse, n_starts, seed, lambda n: tell(each * n, total))
    first = min(_FROM * way.volumes[way.choice], most)
    again = way.once_more(first)
    for number in range(_MOST_SMALL_STEPS):
        again.go_on(max(first * _FINE**-number, LEAST_VOLUME))
        tell(each * (most_coarse + number + 1), total)
        is_below = len(again.volumes) - 1 - again.choice >= _BELOW_IN_SMALL_STEPS
        if is_below or again.volumes[-1] <= LEAST_VOLUME:
            break
    tell(total, total)
    return again.volumes[again.choice]


def _best_way_down(
    course: Course, volumes: NDArray[np.float64], n_starts: int, seed: int, tell: Callable[[int], None]
) -> "_Way":
    """The way of starts that have found the density; after all attempts, of those that explain most.

    tell : called with the number of volumes done in all attempts.
    """
    ways: list[_Way] = []
    for attempt in range(_ATTEMPTS):
        first = _NUMBER + attempt * n_starts
        state = course.start(range(first, first + n_starts), np.full(n_starts, volumes[0]), seed)
        way = _Way(course, state)
        for number, volume in enumerate(volumes):
            way.go_on(volume)
            tell(attempt * len(volumes) + number + 1)
            if number - way.choice >= _BELOW:
                break
        ways = [max([*ways, way], key=lambda one: one.contrast)]
        if way.contrast > _FOUND:
            break
    return ways[0]


class _Judged(NamedTuple):
    """How well the best start predicts the voxels that choose, and fits those used in phasing, per speckle.

    apart : by how much its prediction is better than that of the next start.
    """

    predicted: Predicted
    fitted: Predicted
    apart: float

    @property
    def fit(self) -> float:
        """Mean log-likelihood of the voxels used."""
        return float(self.fitted.mean[0])


class _Way:
    """Starts going through falling volumes, and how well the best of them does at each.

    volumes, judged : volumes so far, in voxels, and the result of each.
    had : the result of the starts when they began, if they had the density by then; else None.
    """

    def __init__(self, course: Course, state: PhaseState, had: _Judged | None = None) -> None:
        self.course, self.state = course, state
        self.volumes: list[float] = []
        self.judged: list[_Judged] = []
        self._had = had
        self._gone = 0
        # Of the volumes that may still be chosen, to begin the second way.
        self._states: dict[int, PhaseState] = {}

    @property
    def _is_sharp(self) -> bool:
        """Whether supports have their final sharpness from the first volume on."""
        return self._had is not None

    def once_more(self, first: float) -> "_Way":
        """A second way down from the volume ``first``, of the starts as they were at the choice.

        It keeps the results of larger volumes, because the best of all may be among them.
        """
        again = _Way(self.course, self._states[self.choice].copy(), self.judged[self.choice])
        larger = [k for k, volume in enumerate(self.volumes) if volume > first]
        again.volumes = [self.volumes[k] for k in larger]
        again.judged = [self.judged[k] for k in larger]
        return again

    def go_on(self, volume: float) -> None:
        """Shrink the supports to a volume, phase, and judge."""
        began = None if self._had is None else self.state.copy()
        self._phase(volume, _SEARCHING)
        judged = self._judge()
        if self._had is not None and began is not None:
            if judged.fit < self._had.fit - WORSE:
                judged = self._tried_again(volume, began, judged)
            self._had = judged
        self._gone += 1
        self.volumes.append(float(volume))
        self.judged.append(judged)
        if self._had is None:
            self._states[len(self.volumes) - 1] = self.state.copy()
            for never in np.flatnonzero(np.logical_or(*self._ruled_out())):
                self._states.pop(int(never), None)

    def _tried_again(self, volume: float, began: PhaseState, judged: _Judged) -> _Judged:
        """The better of a result and that of a gentler try from the same densities, whose state goes on."""
        searched, self.state = self.state, began
        self._phase(volume, _KEEPING)
        kept = self._judge()
        if kept.fit > judged.fit:
            return kept
        self.state = searched
        return judged

    def _phase(self, volume: float, phases: tuple[Phase, ...]) -> None:
        course, done, k = self.course, 0, self._gone
        sharp = 1.0 if self._is_sharp else min(1.0, k / _SHARP)
        blur = FIRST_BLUR + (LAST_BLUR - FIRST_BLUR) * sharp
        for phase in phases:
            for _ in range(phase.count):
                if done % course.every == 0:
                    course.renew(self.state, np.full(self.state.n_starts, volume), blur, k + done)
                    if sharp == 1.0:
                        course.fit_background(self.state)
                self.state = METHODS[phase.method](self.state, course.data, phase.beta)
                done += 1

    def _judge(self) -> _Judged:
        state, data = self.state.copy(), self.course.data
        for phase in _BEFORE_JUDGED:
            for _ in range(phase.count):
                state = METHODS[phase.method](state, data, phase.beta)
        state.density[...] = self.course.estimate(state)
        self.course.symmetrise(state)
        found = predict(state.density, state.background, data, data.choosing)
        best = int(found.mean.argmax())
        ranked = np.sort(found.mean)
        only = slice(best, best + 1)
        fitted = predict(state.density[only], state.background[only], data, data.measured & ~data.held_out)
        return _Judged(found.by_speckle(only), fitted.by_speckle(), float(ranked[-1] - ranked[-2]))

    @property
    def choice(self) -> int:
        """Number of the smallest volume that is as good as the best."""
        most = WORSE if self._is_sharp else MUCH_WORSE
        predicted = joined([judged.predicted for judged in self.judged], self.course.group.order)
        apart = float(np.median([judged.apart for judged in self.judged]))
        return smallest_as_good(predicted, apart, most, *self._ruled_out())[0]

    def _ruled_out(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Volumes that are too small, and those that are passed over, which smaller volumes may add to."""
        fitted = joined([judged.fitted for judged in self.judged], self.course.group.order)
        unknowns = np.array(self.volumes) / independent_amplitudes(self.course.data)
        return are_too_small(fitted, unknowns), are_passed_over(fitted, unknowns)

    @property
    def contrast(self) -> float:
        """How much better the best start, at the choice, explains amplitudes than shell means do, in nats.

        The lesser of two means: over the voxels that choose, and over those used in phasing.
        """
        data, chosen = self.course.data, self.judged[self.choice]
        xp = array_namespace(data.amplitudes)
        point = np.zeros((1, data.n, data.n, data.n), dtype=np.float32)
        point[:, data.n // 2, data.n // 2, data.n // 2] = 1.0  # which predicts the mean of each shell

        def better(found: Predicted, use: Array) -> float:
            return float(found.mean[0] - predict(xp.asarray(point), xp.zeros(1), data, use).mean[0])

        used = data.measured & ~data.held_out
        return min(better(chosen.predicted, data.choosing), better(chosen.fitted, used))


def falling(largest: float, smallest: float, step: float) -> NDArray[np.float64]:
    """Volumes from the largest to the smallest, each smaller than the one before by about the factor step."""
    number = 1 + max(0, round(np.log(largest / smallest) / np.log(step)))
    return np.geomspace(largest, min(smallest, largest), number)


def independent_amplitudes(data: PhasingData) -> float:
    """Number of measured amplitudes that are independent of each other.

    Voxels are finer than speckles, and a reconstruction leaves no noise at distances beyond the diameter.  So
    an intensity has as many independent numbers as its autocorrelation has voxels, counting mates once.
    """
    share = min(1.0, 4 / 3 * np.pi * (data.diameter_A / data.box_A) ** 3)
    return max(float(data.measured.sum()) * share, 1.0)
