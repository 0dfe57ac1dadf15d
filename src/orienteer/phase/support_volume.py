"""The volume that densities may fill, chosen by voxels that phasing has not seen.

A support that is too small forces errors into the density, and held-out voxels are foretold worse the smaller
it is.  One that is too large lets noise in, and far too large a one hides the density altogether.  So a few
starts go down from a large volume to smaller ones, and the smallest volume is taken that foretells held-out
voxels as well as the best does: not worse by more than two standard errors of the difference, and not by
more than a factor of two in the errors themselves.

Held-out voxels are few, and of a symmetric particle nearly all are copies of one speckle: it may be foretold
well by chance.  Those that phasing has seen are many more, and a support that is too small cannot hold a
density that fits them.  More room always fits them better, because noise is fitted too; so a volume is
refused where a larger one fits better by more than its unknowns explain.

Starts keep what they have found when the volume falls.  Were they begun anew at each volume, one at which all
of them fail by chance would end the search.  The steps are large at first, and go on until several volumes in
a row are worse.  Then the starts of the choice go down once more from a little above it, in small steps, and
choose again: they have found what there is to find, so that only the volume makes a difference.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from orienteer.phase.batches import starts_at_once
from orienteer.phase.course import FIRST_BLUR, LARGEST_SUPPORT, LAST_BLUR, Course
from orienteer.phase.data import PhasingData
from orienteer.phase.held_out import Foretold, foretell, joined
from orienteer.phase.iterations import METHODS
from orienteer.phase.schedule import Phase
from orienteer.phase.state import PhaseState

# What is done at each volume, and then, on a copy, before it is judged.
_AT_EACH = (Phase("dm", 1.0, 40), Phase("raar", 0.87, 20))
_BEFORE_JUDGED = (Phase("er", 0.0, 10),)
# From one volume to the next at first, and then; where the small steps begin, over the first choice.
_COARSE, _FINE, _FROM = 1.5, 1.17, 1.22
# Volumes that are tried below the choice before it is believed, in large steps and in small ones.
_BELOW, _BELOW_IN_SMALL_STEPS = 3, 2
# Small steps in all: from the largest volume of all they would lead to a sixth of it.
_MOST_SMALL_STEPS = 12
# Starts that go down: some may fail, and two still tell how far good ones differ.
_STARTS = 5
# Volumes after which supports are as sharp as they become, and backgrounds are fitted.
_SHARP = 3.0
# The number of the first start of all, which no start of a phasing has.
_NUMBER = 10**6
# Volumes that are tried, in those of a ball of the particle's diameter: soft bodies reach beyond what shows
# in the autocorrelation, and long ones fill little of the ball.
_LARGEST, _SMALLEST = 2.0, 0.03
# A volume is worse than the best where it is so by more standard errors than this.
_ERRORS = 2.0
# Nats below the best that are worse, whatever the errors: amplitudes are twice as wrong while starts still
# look for the density, and errors have twice the variance once they have it, and only the volume differs.
_MUCH_WORSE, _WORSE = float(np.log(2.0)), float(np.log(2.0)) / 2
# Unknowns over amplitudes from which on noise may be fitted as well as anything.
_ALL_IS_FITTED = 0.95
# No support is smaller, in voxels.
LEAST_VOLUME = 8


def choose_volume(course: Course, seed: int, tell: Callable[[int, int], None]) -> float:
    """The smallest volume, in voxels, that foretells held-out voxels as well as any.

    tell : hears of the iterations that are done, and of all.
    """
    data = course.data
    ball = np.pi / 6 * (data.diameter_A / data.voxel_A) ** 3
    largest = min(_LARGEST * ball, LARGEST_SUPPORT * data.n**3)
    coarse = falling(largest, max(_SMALLEST * ball, LEAST_VOLUME), _COARSE)
    n_starts = max(2, starts_at_once(data, _STARTS))
    each = n_starts * sum(phase.count for phase in (*_AT_EACH, *_BEFORE_JUDGED))
    total = each * (len(coarse) + _MOST_SMALL_STEPS)
    state = course.start(range(_NUMBER, _NUMBER + n_starts), np.full(n_starts, largest), seed)
    kept, way = state, _Way(course, state)
    for number, volume in enumerate(coarse, start=1):
        way.go_on(volume)
        tell(each * number, total)
        if way.choice == number - 1:
            kept = way.state.copy()
        if number - 1 - way.choice >= _BELOW:
            break
    first = min(_FROM * way.volumes[way.choice], LARGEST_SUPPORT * data.n**3)
    again = way.once_more(kept, first)
    for number in range(_MOST_SMALL_STEPS):
        again.go_on(max(first * _FINE**-number, LEAST_VOLUME))
        tell(each * (len(coarse) + number + 1), total)
        is_below = len(again.volumes) - 1 - again.choice >= _BELOW_IN_SMALL_STEPS
        if is_below or again.volumes[-1] <= LEAST_VOLUME:
            break
    tell(total, total)
    return again.volumes[again.choice]


class _Way:
    """Starts on their way through falling volumes, and how well the best of them does at each.

    volumes : in voxels.
    is_sharp : whether supports are as sharp as they become from the first volume on.
    """

    def __init__(self, course: Course, state: PhaseState, is_sharp: bool = False) -> None:
        self.course, self.state, self._is_sharp = course, state, is_sharp
        self.volumes: list[float] = []
        self._foretold: list[Foretold] = []
        self._fitted: list[Foretold] = []
        self._apart: list[float] = []
        self._gone = 0

    def once_more(self, state: PhaseState, first: float) -> "_Way":
        """Starts that have found the density on their way down from a volume.

        What larger volumes have shown stays known: none of the smaller ones need be as good.
        """
        again = _Way(self.course, state, is_sharp=True)
        larger = [k for k, volume in enumerate(self.volumes) if volume > first]
        for name in ("volumes", "_foretold", "_fitted", "_apart"):
            setattr(again, name, [getattr(self, name)[k] for k in larger])
        return again

    def go_on(self, volume: float) -> None:
        """Bring the supports to a volume, phase, and judge."""
        course, done, k = self.course, 0, self._gone
        sharp = 1.0 if self._is_sharp else min(1.0, k / _SHARP)
        blur = FIRST_BLUR + (LAST_BLUR - FIRST_BLUR) * sharp
        for phase in _AT_EACH:
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
        """See how well the best start foretells voxels, and how well it fits those that it has seen."""
        state, data = self.state.copy(), self.course.data
        for phase in _BEFORE_JUDGED:
            for _ in range(phase.count):
                state = METHODS[phase.method](state, data, phase.beta)
        state.density[...] = self.course.estimate(state)
        self.course.symmetrise(state)
        found = foretell(state.density, state.background, data, data.choosing)
        best = int(found.mean.argmax())
        ranked = np.sort(found.mean)
        only = slice(best, best + 1)
        seen = data.measured & ~data.held_out
        self._apart.append(float(ranked[-1] - ranked[-2]))
        self._foretold.append(found.by_speckle(only))
        self._fitted.append(foretell(state.density[only], state.background[only], data, seen).by_speckle())

    @property
    def choice(self) -> int:
        """The number of the smallest volume that is as good as any."""
        data, copies = self.course.data, self.course.group.order
        most = _WORSE if self._is_sharp else _MUCH_WORSE
        unknowns = np.array(self.volumes) / independent_amplitudes(data)
        refused = are_too_small(joined(self._fitted, copies), unknowns)
        foretold = joined(self._foretold, copies)
        return smallest_as_good(foretold, float(np.median(self._apart)), most, refused)[0]


def falling(largest: float, smallest: float, step: float) -> NDArray[np.float64]:
    """Volumes from the largest to the smallest, each about a step smaller than the one before."""
    number = 1 + max(0, round(np.log(largest / smallest) / np.log(step)))
    return np.geomspace(largest, min(smallest, largest), number)


def independent_amplitudes(data: PhasingData) -> float:
    """Amplitudes that are measured, without those that others tell.

    Voxels are finer than speckles, and a reconstruction leaves no noise at distances that no particle has: it
    has as many numbers as its autocorrelation has voxels, of which half are mates.
    """
    share = min(1.0, 4 / 3 * np.pi * (data.diameter_A / data.box_A) ** 3)
    return max(float(data.measured.sum()) * share, 1.0)


def are_too_small(fitted: Foretold, unknowns: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether (K,) a falling volume fits seen voxels worse than a larger one by more than noise explains.

    fitted : how well voxels that phasing has seen are fitted.
    unknowns : (K,), voxels of each volume over independent amplitudes.

    With p unknowns and N amplitudes a share p / N of the noise is fitted, and the rest of its variance left.
    """
    left = np.log1p(-np.minimum(unknowns, _ALL_IS_FITTED)) / 2
    result = np.zeros(len(unknowns), bool)
    for larger in range(len(unknowns)):
        below, error = fitted.below(larger)
        worse = below > np.maximum(left - left[larger], 0) + _ERRORS * error
        result[larger + 1 :] |= worse[larger + 1 :]
    return result


def smallest_as_good(
    found: Foretold,
    scatter: float = 0.0,
    most: float = _MUCH_WORSE,
    refused: NDArray[np.bool_] | None = None,
) -> tuple[int, NDArray[np.float64]]:
    """The last of falling volumes, counted from the best, before held-out voxels are foretold worse.

    What comes after it is not asked: where voxels tell little, some far smaller volume may do as well by
    chance, and would ruin the density.  A volume that is too large does no harm.

    scatter : by how much scores of good starts at one volume differ.
    most : how many nats below the best are allowed, however large the errors.
    refused : (K,), volumes that are known to be too small, and not the first of them; None: no such volumes.
    Returns its number, and the standard error (K,) of how far each is below the best: it comes from the
    scatter of speckles, which are few, and from that of starts.
    """
    is_out = np.zeros(len(found.mean), bool) if refused is None else refused
    best = int(np.argmax(np.where(is_out, -np.inf, found.mean)))
    below, by_speckles = found.below(best)
    error = np.hypot(by_speckles, scatter)
    # Symmetric particles have few speckles that are no copies: their errors alone would allow anything.
    allowed = np.minimum(_ERRORS * error, most)
    worse = np.flatnonzero((below > allowed)[best:] | is_out[best:])
    return (best + int(worse[0]) - 1 if len(worse) else len(below) - 1), error
