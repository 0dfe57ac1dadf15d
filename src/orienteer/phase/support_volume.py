"""The volume that densities may fill, chosen by voxels that phasing has not seen.

A support that is too small forces errors into the density, and held-out voxels are foretold worse the smaller
it is.  One that is too large lets noise in, and far too large a one hides the density altogether.  So a few
starts go down from a large volume to smaller ones, and the smallest volume is taken that foretells held-out
voxels as well as the best does: not worse by more than two standard errors of the difference, and not by
more than a factor of two in the errors themselves: symmetric particles have few speckles that are no copies.

Starts keep what they have found when the volume falls.  Were they begun anew at each volume, one at which all
of them fail by chance would end the search.  The steps are large at first, and go on until several volumes in
a row are worse.  Then the starts of the choice go through a few volumes around it, in small steps, and choose
again: they have found what there is to find, so that only the volume makes a difference.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from orienteer.phase.batches import starts_at_once
from orienteer.phase.course import FIRST_BLUR, LARGEST_SUPPORT, LAST_BLUR, Course
from orienteer.phase.held_out import Foretold, foretell
from orienteer.phase.iterations import METHODS
from orienteer.phase.schedule import Phase
from orienteer.phase.state import PhaseState

# What is done at each volume, and then, on a copy, before it is judged.
_AT_EACH = (Phase("dm", 1.0, 40), Phase("raar", 0.87, 20))
_BEFORE_JUDGED = (Phase("er", 0.0, 10),)
# From one volume to the next at first; then volumes around the choice, over it.
_COARSE, _AROUND = 1.5, (1.22, 1.04, 0.89, 0.76)
# Volumes that are tried below the choice before it is believed.
_BELOW = 3
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
    total = each * (len(coarse) + len(_AROUND))
    state = course.start(range(_NUMBER, _NUMBER + n_starts), np.full(n_starts, largest), seed)
    kept, way = state, _Way(course, state)
    for number, volume in enumerate(coarse, start=1):
        way.go_on(volume)
        tell(each * number, total)
        if way.choice == number - 1:
            kept = way.state.copy()
        if number - 1 - way.choice >= _BELOW:
            break
    again = _Way(course, kept, is_sharp=True)
    around = np.clip(way.volumes[way.choice] * np.array(_AROUND), LEAST_VOLUME, LARGEST_SUPPORT * data.n**3)
    for number, volume in enumerate(around, start=1):
        again.go_on(float(volume))
        tell(each * (len(coarse) + number), total)
    return again.volumes[again.choice]


class _Way:
    """Starts on their way through falling volumes, and how well the best of them foretells voxels at each.

    volumes : in voxels.
    is_sharp : whether supports are as sharp as they become from the first volume on.
    """

    def __init__(self, course: Course, state: PhaseState, is_sharp: bool = False) -> None:
        self.course, self.state, self._is_sharp = course, state, is_sharp
        self.volumes: list[float] = []
        self._winners: list[NDArray[np.float64]] = []
        self._apart: list[float] = []

    def go_on(self, volume: float) -> None:
        """Bring the supports to a volume, phase, and judge."""
        course, done, k = self.course, 0, len(self.volumes)
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
        found = self._judged()
        ranked = np.sort(found.mean)
        self.volumes.append(float(volume))
        self._winners.append(found.by_voxel[found.mean.argmax()])
        self._apart.append(float(ranked[-1] - ranked[-2]))
        self._voxels = found

    def _judged(self) -> Foretold:
        state, data = self.state.copy(), self.course.data
        for phase in _BEFORE_JUDGED:
            for _ in range(phase.count):
                state = METHODS[phase.method](state, data, phase.beta)
        state.density[...] = self.course.estimate(state)
        self.course.symmetrise(state)
        return foretell(state.density, state.background, data, data.choosing)

    @property
    def choice(self) -> int:
        """The number of the smallest volume that is as good as any."""
        copies = self.course.group.order
        winners = Foretold(np.stack(self._winners), self._voxels.counts, self._voxels.speckle, copies)
        most = _WORSE if self._is_sharp else _MUCH_WORSE
        return smallest_as_good(winners, float(np.median(self._apart)), most)[0]


def falling(largest: float, smallest: float, step: float) -> NDArray[np.float64]:
    """Volumes from the largest to the smallest, each about a step smaller than the one before."""
    number = 1 + max(0, round(np.log(largest / smallest) / np.log(step)))
    return np.geomspace(largest, min(smallest, largest), number)


def smallest_as_good(
    found: Foretold, scatter: float = 0.0, most: float = _MUCH_WORSE
) -> tuple[int, NDArray[np.float64]]:
    """The last of falling volumes, counted from the best, before held-out voxels are foretold worse.

    What comes after it is not asked: where voxels tell little, some far smaller volume may do as well by
    chance, and would ruin the density.  A volume that is too large does no harm.

    scatter : by how much scores of good starts at one volume differ.
    most : how many nats below the best are allowed, however large the errors.
    Returns its number, and the standard error (K,) of how far each is below the best: it comes from the
    scatter of speckles, which are few, and from that of starts.
    """
    best = int(np.argmax(found.mean))
    below, by_speckles = found.below(best)
    error = np.hypot(by_speckles, scatter)
    # Symmetric particles have few speckles that are no copies: their errors alone would allow anything.
    allowed = np.minimum(_ERRORS * error, most)
    worse = np.flatnonzero(below[best:] > allowed[best:])
    return (best + int(worse[0]) - 1 if len(worse) else len(below) - 1), error
