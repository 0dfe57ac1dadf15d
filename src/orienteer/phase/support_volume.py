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
If they find none at all, other starts go down.  The steps are large at first, and go on until several volumes
in a row are worse.  Then the starts as they were at the choice go down once more from a little above it, in
small steps, and choose again: they have found the density, so that only the volume makes a difference.
"""

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import array_namespace
from orienteer.phase.batches import starts_at_once
from orienteer.phase.course import FIRST_BLUR, LARGEST_SUPPORT, LAST_BLUR, Course
from orienteer.phase.data import PhasingData
from orienteer.phase.held_out import Predicted, joined, predict
from orienteer.phase.iterations import METHODS
from orienteer.phase.schedule import Phase
from orienteer.phase.state import PhaseState

# Iterations at each volume, of starts that search for the density and of starts that have found it; and then,
# on a copy, before that is judged.  The difference map would lead some of the latter away again.
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
# How often other starts go down if those before found no density at any volume; and if none did, the volume
# relative to the ball of the particle's diameter: compact bodies fill about so much.
_ATTEMPTS, _WITHOUT_DENSITY = 3, 0.7
# A density is found if it fits the voxels used by this many nats better than the mean of each shell does, not
# counting noise that it fits.  (Starts without a density came to 0.2 at most, the others to 0.6 and more.)
_FOUND = 0.3
# Number of starts: some may fail, and at least two good ones are needed to see how much good ones differ.
_STARTS = 5
# Volumes after which supports have their final sharpness, and backgrounds are fitted.
_SHARP = 3.0
# Number of the first start here; it exceeds all numbers of a phasing's starts, whose random draws so differ.
_NUMBER = 10**6
# Range of volumes, relative to the ball of the particle's diameter: soft bodies reach beyond the diameter
# that the autocorrelation shows, and long ones fill little of the ball.
_LARGEST, _SMALLEST = 2.0, 0.03
# A volume counts as worse than the best if it is below by more standard errors than this.
_ERRORS = 2.0
# A volume also counts as worse if it is below the best by this many nats, whatever the errors.  _MUCH_WORSE
# (amplitudes twice as wrong) applies while starts still search for the density; _WORSE (errors of twice the
# variance) applies once they have found it and only the volume differs.
_MUCH_WORSE, _WORSE = float(np.log(2.0)), float(np.log(2.0)) / 2
# Upper limit of unknowns over amplitudes when fitted noise is estimated; at 1, all noise would be fitted.
_ALL_IS_FITTED = 0.95
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
    total = each * (len(coarse) + _MOST_SMALL_STEPS)
    for attempt in range(_ATTEMPTS):
        numbers = range(_NUMBER + attempt * n_starts, _NUMBER + (attempt + 1) * n_starts)
        kept, way = _go_down(course, coarse, numbers, seed, lambda n: tell(each * n, total))
        if way.has_density:
            break
    else:
        tell(total, total)
        return min(_WITHOUT_DENSITY * ball, most)
    first = min(_FROM * way.volumes[way.choice], most)
    again = way.once_more(kept, first)
    for number in range(_MOST_SMALL_STEPS):
        again.go_on(max(first * _FINE**-number, LEAST_VOLUME))
        tell(each * (len(coarse) + number + 1), total)
        is_below = len(again.volumes) - 1 - again.choice >= _BELOW_IN_SMALL_STEPS
        if is_below or again.volumes[-1] <= LEAST_VOLUME:
            break
    tell(total, total)
    return again.volumes[again.choice]


def _go_down(
    course: Course, volumes: NDArray[np.float64], numbers: range, seed: int, tell: Callable[[int], None]
) -> tuple[PhaseState, "_Way"]:
    """Starts with these numbers as they were at the volume of their choice, and their whole way down.

    tell : called with the number of volumes done.
    """
    state = course.start(numbers, np.full(len(numbers), volumes[0]), seed)
    kept, way = state, _Way(course, state)
    for number, volume in enumerate(volumes):
        way.go_on(volume)
        tell(number + 1)
        if way.choice == number:
            kept = way.state.copy()
        if number - way.choice >= _BELOW:
            break
    return kept, way


class _Way:
    """Starts going through falling volumes, and how well the best of them does at each.

    volumes : volumes so far, in voxels.
    is_sharp : whether supports have their final sharpness from the first volume on.
    """

    def __init__(self, course: Course, state: PhaseState, is_sharp: bool = False) -> None:
        self.course, self.state, self._is_sharp = course, state, is_sharp
        self.volumes: list[float] = []
        self._predicted: list[Predicted] = []
        self._fitted: list[Predicted] = []
        self._apart: list[float] = []
        self._gone = 0

    def once_more(self, state: PhaseState, first: float) -> "_Way":
        """A second way down from the volume ``first``, of starts that have found the density.

        It keeps the results of larger volumes, because the best of all may be among them.
        """
        again = _Way(self.course, state, is_sharp=True)
        larger = [k for k, volume in enumerate(self.volumes) if volume > first]
        for name in ("volumes", "_predicted", "_fitted", "_apart"):
            setattr(again, name, [getattr(self, name)[k] for k in larger])
        return again

    def go_on(self, volume: float) -> None:
        """Shrink the supports to a volume, phase, and judge."""
        course, done, k = self.course, 0, self._gone
        sharp = 1.0 if self._is_sharp else min(1.0, k / _SHARP)
        blur = FIRST_BLUR + (LAST_BLUR - FIRST_BLUR) * sharp
        for phase in _KEEPING if self._is_sharp else _SEARCHING:
            for _ in range(phase.count):
                if done % course.every == 0:
                    course.renew(self.state, np.full(self.state.n_starts, volume), blur, k + done)
                    if sharp == 1.0:
                        course.fit_background(self.state)
                self.state = METHODS[phase.method](self.state, course.data, phase.beta)
                done += 1
        self._gone += 1
        self.volumes.append(float(volume))
        self._judge()

    def _judge(self) -> None:
        """Record how well the best start predicts the voxels that choose, and fits those used in phasing."""
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
        seen = data.measured & ~data.held_out
        self._apart.append(float(ranked[-1] - ranked[-2]))
        self._predicted.append(found.by_speckle(only))
        self._fitted.append(predict(state.density[only], state.background[only], data, seen).by_speckle())

    @property
    def choice(self) -> int:
        """Number of the smallest volume that is as good as the best."""
        copies = self.course.group.order
        most = _WORSE if self._is_sharp else _MUCH_WORSE
        fitted, predicted = joined(self._fitted, copies), joined(self._predicted, copies)
        refused, lost = are_too_small(fitted, self._unknowns), are_without_density(fitted)
        return smallest_as_good(predicted, float(np.median(self._apart)), most, refused, lost)[0]

    @property
    def has_density(self) -> bool:
        """Whether the best start has found a density at the volume of the choice."""
        fits = float(self._fitted[self.choice].mean[0]) - self._by_shell_means
        return fits + float(_noise_left(self._unknowns[self.choice])) > _FOUND

    @cached_property
    def _by_shell_means(self) -> float:
        """How well the mean of each shell fits the voxels used: as well as a point in the middle does."""
        data = self.course.data
        point = np.zeros((1, data.n, data.n, data.n), dtype=np.float32)
        point[:, data.n // 2, data.n // 2, data.n // 2] = 1.0
        xp = array_namespace(data.amplitudes)
        return float(predict(xp.asarray(point), xp.zeros(1), data, data.measured & ~data.held_out).mean[0])

    @property
    def _unknowns(self) -> NDArray[np.float64]:
        """Voxels of each volume over independent amplitudes."""
        return np.array(self.volumes) / independent_amplitudes(self.course.data)


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


def are_too_small(fitted: Predicted, unknowns: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which (K,) of falling volumes fit the voxels used worse than a larger one by more than noise explains.

    fitted : how well the voxels used in phasing are fitted.
    unknowns : (K,), voxels of each volume over independent amplitudes.
    """
    left = _noise_left(unknowns)
    result = np.zeros(len(unknowns), bool)
    for larger in range(len(unknowns)):
        below, error = fitted.below(larger)
        worse = below > np.maximum(left - left[larger], 0) + _ERRORS * error
        result[larger + 1 :] |= worse[larger + 1 :]
    return result


def _noise_left(unknowns: NDArray[np.float64]) -> NDArray[np.float64]:
    """By how many nats the noise that a density fits makes its fit better, with the opposite sign.

    With p unknowns and N amplitudes, a share p / N of the noise variance is fitted, and 1 - p / N is left.
    """
    return np.log1p(-np.minimum(unknowns, _ALL_IS_FITTED)) / 2


def are_without_density(fitted: Predicted) -> NDArray[np.bool_]:
    """At which (K,) of falling volumes the starts had not found the density, or had lost it again.

    fitted : how well the voxels used in phasing are fitted.

    With more room any density fits better.  So where a smaller volume fits better, the starts had no density,
    and what they predict says nothing about their volume.
    """
    result = np.zeros(len(fitted.mean), bool)
    for smaller in range(len(result)):
        below, error = fitted.below(smaller)
        result[:smaller] |= (below > _ERRORS * error)[:smaller]
    return result


def smallest_as_good(
    found: Predicted,
    scatter: float = 0.0,
    most: float = _MUCH_WORSE,
    refused: NDArray[np.bool_] | None = None,
    lost: NDArray[np.bool_] | None = None,
) -> tuple[int, NDArray[np.float64]]:
    """The last of falling volumes, from the best on, before one predicts held-out voxels worse.

    The search stops at the first worse volume: if the voxels say little, a far smaller volume may do as well
    by chance, and would ruin the density, while one that is too large does little harm.

    scatter : difference between the scores of good starts at one volume.
    most : nats below the best that are allowed at most, however large the errors.
    refused : (K,), volumes that are known to be too small, never the first of all; None: no such volumes.
    lost : (K,), volumes that are passed over, because the starts had no density there; never all.

    Returns the number of the volume, and the standard error (K,) of the difference between each volume and
    the best; it comes from the scatter of speckles, which are few, and from that of starts.
    """
    no_volumes = np.zeros(len(found.mean), bool)
    is_out, is_lost = (no_volumes if some is None else some for some in (refused, lost))
    best = int(np.argmax(np.where(is_out | is_lost, -np.inf, found.mean)))
    below, by_speckles = found.below(best)
    error = np.hypot(by_speckles, scatter)
    # Symmetric particles have few independent speckles, so errors alone would allow any volume.
    allowed = np.minimum(_ERRORS * error, most)
    is_worse = ((below > allowed) | is_out) & ~is_lost
    end = best + int(np.argmax(is_worse[best:])) if is_worse[best:].any() else len(below)
    return int(np.flatnonzero(~is_lost[:end])[-1]), error
