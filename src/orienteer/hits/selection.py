"""Single particles, several particles, and junk, told apart without anybody saying how the particle looks.

The particle is what most hits have in common.  It is looked for in the half of all hits that are most
alike; then, in turns, how hits of the particle scatter is learned, and all hits that scatter so are taken
in.  Nothing is compared with a three-dimensional model: hits that fit a model badly are what a better one
is made from.

After N. Billor, A. S. Hadi, P. F. Velleman, BACON: blocked adaptive computationally efficient outlier
nominators, Comput. Stat. Data Anal. 34, 279 (2000).
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv

from orienteer.hits.brightness_likeness import BrightnessLikeness
from orienteer.hits.evidence import Evidence
from orienteer.hits.fringe_likeness import FringeLikeness
from orienteer.hits.kinds import HitKind
from orienteer.hits.profile_likeness import ProfileLikeness, ring_groups
from orienteer.hits.size_likeness import SizeLikeness
from orienteer.hits.suspicion import Suspicion

# Hits from which a particle can be learned.
FEWEST_HITS = 60
# Hits fainter than this many standard deviations of the background say nothing of their kind.
FAINTEST = 4.0
_ROUNDS = 12
# Share of the particle's hits that is taken in while it is learned.
_NEARLY_ALL = 0.9998
# A limit that no distance reaches.
_ANY = 1e6
# Hits that are tried as the middle of all.
_CENTRES = 300
# Fringes so many standard deviations too strong, beyond this part of the diameter, mean several particles.
_FRINGES, _BEYOND = 4.0, 0.6
# Hits so many standard deviations brighter or fainter than most are not of the particle: while it is learned,
# and later, when their looks have a say as well.
_ODD_WHILE_LEARNING, _ODD = 3.2, 4.0
# Shares of the particle's distances that tell how their tail goes on.
_LOWER, _UPPER = 0.5, 0.9


@dataclass(frozen=True, eq=False)
class Selection:
    """What is known of the particle, by which hits are judged.

    profile, fringe, size, brightness : four tests of likeness.
    limits : (4,) distances up to which hits are alike.
    suspicion : how likely hits that pass all tests are junk; None while learning.
    """

    profile: ProfileLikeness
    fringe: FringeLikeness
    size: SizeLikeness
    brightness: BrightnessLikeness
    limits: NDArray[np.float64]
    suspicion: Suspicion | None = None

    @classmethod
    def learn(cls, hits: Evidence, keep: float) -> "Selection | None":
        """Learn the particle from hits of all kinds; None where there are too few that say anything.

        keep : share of the hits of the particle that each of the three tests of looks keeps.
        """
        clear = np.flatnonzero(hits.significance > FAINTEST)
        if len(clear) < FEWEST_HITS:
            return None
        hits = hits.of(clear)
        core = _most_alike(hits)
        for _ in range(_ROUNDS):
            selection = cls._of(hits.of(core))
            new = selection.passes(hits)
            if new.sum() < FEWEST_HITS // 2 or np.array_equal(new, core):
                break
            core = new
        inner = hits.of(core)
        selection = cls._of(inner)
        # What is least alike among those taken in is junk more often than the rest.
        factors = np.maximum(np.quantile(selection.distances(inner)[:, :3], keep, axis=0), 1e-12)
        # A new hit is farther from what was learned than those are that it was learned from.
        learned = np.array([len(selection.profile.profile), len(selection.fringe.mean), 1])
        wider = 1 + 6 * learned / len(inner.size_A)
        limits = np.append(selection.limits[:3] * factors * wider, _ODD**2)
        selection = replace(selection, limits=limits)
        alike = hits.of(np.asarray((selection.distances(hits)[:, :3] <= 1).all(axis=1)))
        return replace(
            selection,
            suspicion=Suspicion.of(selection.features(alike), selection.brightness.deviation(alike)),
        )

    @classmethod
    def _of(cls, core: Evidence) -> "Selection":
        """Learned from hits of the particle, with limits so wide that what is left out does not matter.

        Cut more closely, those that are left would look ever more alike.  Sizes have no limit yet: a particle
        that looks smaller from some sides must be able to come in with all of them.
        """
        profile, fringe = ProfileLikeness.of(ring_groups(core), core), FringeLikeness.of(core)
        limits = [_limit(test.distance(core)) for test in (profile, fringe)]
        size, brightness = SizeLikeness.of(core), BrightnessLikeness.of(core)
        return cls(profile, fringe, size, brightness, np.array([*limits, _ANY, _ODD_WHILE_LEARNING**2]))

    @property
    def size_A(self) -> float:
        """Median diameter of the particle."""
        return self.size.size_A

    def distances(self, hits: Evidence) -> NDArray[np.float64]:
        """(N, 4) how far hits are from the particle by profile, fringes, size, brightness; 1 is the limit."""
        tests = (self.profile, self.fringe, self.size, self.brightness)
        return np.stack([test.distance(hits) for test in tests], axis=1) / self.limits

    def features(self, hits: Evidence) -> NDArray[np.float64]:
        """(N, F) how hits look: size, shares of the photons in groups of rings, and fringes."""
        size = np.log(np.maximum(hits.size_A, 1e-3))
        return np.column_stack([size, self.profile.shares(hits), self.fringe.logarithm(hits)])

    def passes(self, hits: Evidence) -> NDArray[np.bool_]:
        """(N,) which hits all tests take for the particle."""
        alike = (self.distances(hits) <= 1).all(axis=1) & (hits.significance > FAINTEST)
        if self.suspicion is not None:
            found = hits.of(alike)
            alike[alike] = self.suspicion.trust(self.features(found), self.brightness.deviation(found))
        return np.asarray(alike)

    def kinds(self, hits: Evidence, separation_A: NDArray[np.float64]) -> NDArray[np.uint8]:
        """(N,) the kind of each hit, :class:`HitKind`.

        separation_A : (J + 1,) edges of the bands of the fringes.
        """
        single = self.passes(hits)
        beyond = separation_A[1:] > _BEYOND * self.size_A
        fringed = (self.fringe.excess(hits)[:, beyond] > _FRINGES).any(axis=1)
        kind = np.where(fringed, HitKind.MULTIPLE, HitKind.JUNK)
        kind[single] = HitKind.SINGLE
        kind[hits.significance <= FAINTEST] = HitKind.UNSURE
        return kind.astype(np.uint8)


def _most_alike(hits: Evidence) -> NDArray[np.bool_]:
    """(N,) the half of the hits that lie nearest around one of them."""
    shares = (
        np.add.reduceat(hits.signal, np.flatnonzero(np.diff(ring_groups(hits, 6), prepend=-1)), axis=1)
        / np.maximum(hits.brightness, 1)[:, None]
    )
    fringes = np.log((hits.fringes + 1) / (1 + hits.visibility[:, None] * 0.02))
    features = np.concatenate([shares, fringes, 3 * np.log(hits.size_A)[:, None]], axis=1)
    middle = np.median(features, axis=0)
    spread = np.median(np.abs(features - middle), axis=0) + 1e-9
    scaled = np.clip((features - middle) / spread, -8, 8)
    # Some hits spread over all will do to find the middle of the densest half.
    centres = scaled[:: max(1, len(scaled) // _CENTRES)]
    square = (scaled**2).sum(axis=1)
    distance = (centres**2).sum(axis=1)[:, None] + square[None, :] - 2 * centres @ scaled.T
    half = len(scaled) // 2
    radius = np.partition(distance, half, axis=1)[:, half]
    nearest = np.argsort(distance[radius.argmin()], kind="stable")[: half + 1]
    core = np.zeros(len(scaled), dtype=bool)
    core[nearest] = True
    return core


def _limit(distance: NDArray[np.float64]) -> float:
    """The distance below which nearly all hits like these (N,) lie.

    Distances would follow a chi-square distribution if deviations were normal.  Orientations are not, and
    their tail is longer: it is that of the gamma distribution with the same median and the same upper
    quantile, both of which few hits of something else hardly change.
    """
    lower, upper = np.quantile(distance, [_LOWER, _UPPER])
    ratio = max(float(upper) / max(float(lower), 1e-12), 1.0)
    shapes = np.geomspace(0.1, 50, 200)
    ratios = gammaincinv(shapes, _UPPER) / gammaincinv(shapes, _LOWER)
    shape = float(np.interp(-ratio, -ratios, shapes))
    return max(float(lower), 1e-12) * float(gammaincinv(shape, _NEARLY_ALL) / gammaincinv(shape, _LOWER))
