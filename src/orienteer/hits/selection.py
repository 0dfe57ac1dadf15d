"""Separate single particles from several particles and junk, without knowing how the particle looks.

The particle is what most hits have in common.  The search starts with the half of all hits that are most
alike.  Then two steps alternate: learn how the hits of the particle vary, and accept all hits that vary in
this way.  No hit is compared with a three-dimensional model, because hits that fit a model badly are needed
to improve it.

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

# Fewest hits from which a particle can be learned.
FEWEST_HITS = 60
# The kind of hits fainter than this many standard deviations of the background cannot be judged.
FAINTEST = 4.0
_ROUNDS = 12
# Share of the particle's hits to accept while the particle is learned.
_NEARLY_ALL = 0.9998
# A limit that no distance reaches.
_ANY = 1e6
# Number of hits that are tried as the centre of the most similar half.
_CENTRES = 300
# Several particles: fringes this many standard deviations too strong, at separations beyond this part of the
# particle's diameter.
_FRINGES, _BEYOND = 4.0, 0.6
# Hits this many standard deviations brighter or fainter than most are not the particle: while it is learned,
# and later, when suspicion is judged by brightness and looks together.
_ODD_WHILE_LEARNING, _ODD = 3.2, 4.0
# Quantiles of the distances of the particle's hits, from which the tail is extrapolated.
_LOWER, _UPPER = 0.5, 0.9


@dataclass(frozen=True, eq=False)
class Selection:
    """What is known of the particle, and the tests by which hits are judged.

    profile, fringe, size, brightness : four tests, each with a distance of hits from the particle.
    limits : (4,) largest distances at which hits still pass.
    suspicion : how likely hits that pass all tests are junk; None while the particle is learned.
    """

    profile: ProfileLikeness
    fringe: FringeLikeness
    size: SizeLikeness
    brightness: BrightnessLikeness
    limits: NDArray[np.float64]
    suspicion: Suspicion | None = None

    @classmethod
    def learn(cls, hits: Evidence, keep: float) -> "Selection | None":
        """Learn the particle from hits of all kinds; None if too few of them are bright enough.

        keep : share of the particle's hits that each of the tests of profile, fringes and size keeps.
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
        # Tighten the limits: the accepted hits that are least alike are junk more often than the rest.
        factors = np.maximum(np.quantile(selection.distances(inner)[:, :3], keep, axis=0), 1e-12)
        # New hits have larger distances than the hits from which means and covariances were learned.
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
        """Learned from hits of the particle, with limits so wide that they cut off almost none of its hits.

        With tighter limits, each round would keep fewer and more similar hits.  Sizes have no limit yet,
        because a particle that looks smaller from some sides must be accepted from all of them.
        """
        profile, fringe = ProfileLikeness.of(ring_groups(core), core), FringeLikeness.of(core)
        limits = [_limit(test.distance(core)) for test in (profile, fringe)]
        size, brightness = SizeLikeness.of(core), BrightnessLikeness.of(core)
        return cls(profile, fringe, size, brightness, np.array([*limits, _ANY, _ODD_WHILE_LEARNING**2]))

    @property
    def size_A(self) -> float:
        """Median diameter of the particle in A."""
        return self.size.size_A

    def distances(self, hits: Evidence) -> NDArray[np.float64]:
        """(N, 4) distance of hits from the particle in profile, fringes, size, brightness; 1 is the limit."""
        tests = (self.profile, self.fringe, self.size, self.brightness)
        return np.stack([test.distance(hits) for test in tests], axis=1) / self.limits

    def features(self, hits: Evidence) -> NDArray[np.float64]:
        """(N, F) features of hits: size, shares of the photons in groups of rings, and fringes."""
        size = np.log(np.maximum(hits.size_A, 1e-3))
        return np.column_stack([size, self.profile.shares(hits), self.fringe.logarithm(hits)])

    def passes(self, hits: Evidence) -> NDArray[np.bool_]:
        """(N,) which hits pass all tests, so are taken for a single particle."""
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
    """(N,) the most compact half of the hits: those nearest to one hit, chosen so that they lie closest."""
    shares = (
        np.add.reduceat(hits.signal, np.flatnonzero(np.diff(ring_groups(hits, 6), prepend=-1)), axis=1)
        / np.maximum(hits.brightness, 1)[:, None]
    )
    fringes = np.log((hits.fringes + 1) / (1 + hits.visibility[:, None] * 0.02))
    features = np.concatenate([shares, fringes, 3 * np.log(hits.size_A)[:, None]], axis=1)
    middle = np.median(features, axis=0)
    spread = np.median(np.abs(features - middle), axis=0) + 1e-9
    scaled = np.clip((features - middle) / spread, -8, 8)
    # A sample of the hits as candidate centres is enough to find the most compact half.
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

    Distances would follow a chi-square distribution if deviations were normal.  Deviations due to orientation
    are not normal, and have a longer tail.  The tail is that of the gamma distribution with the same median
    and the same upper quantile, because a few hits of something else hardly change these two.
    """
    lower, upper = np.quantile(distance, [_LOWER, _UPPER])
    ratio = max(float(upper) / max(float(lower), 1e-12), 1.0)
    shapes = np.geomspace(0.1, 50, 200)
    ratios = gammaincinv(shapes, _UPPER) / gammaincinv(shapes, _LOWER)
    shape = float(np.interp(-ratio, -ratios, shapes))
    return max(float(lower), 1e-12) * float(gammaincinv(shape, _NEARLY_ALL) / gammaincinv(shape, _LOWER))
