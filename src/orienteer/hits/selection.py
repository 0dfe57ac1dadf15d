"""Single particles, several particles, and junk, told apart without anybody saying how the particle looks.

The particle is what most hits have in common.  It is looked for in the half of all hits that are most
alike; then, in turns, how hits of the particle scatter is learned, and all hits that scatter so are taken
in.  Nothing is compared with a three-dimensional model: hits that fit a model badly are what a better one
is made from.

After N. Billor, A. S. Hadi, P. F. Velleman, BACON: blocked adaptive computationally efficient outlier
nominators, Comput. Stat. Data Anal. 34, 279 (2000).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from orienteer.hits.evidence import Evidence
from orienteer.hits.fringe_likeness import FringeLikeness
from orienteer.hits.kinds import HitKind
from orienteer.hits.profile_likeness import ProfileLikeness, ring_groups

# Hits from which a particle can be learned.
FEWEST_HITS = 60
# Hits fainter than this many standard deviations of the background say nothing of their kind.
FAINTEST = 4.0
_ROUNDS = 12
# Hits that are tried as the middle of all.
_CENTRES = 300
# Fringes so many standard deviations too strong, beyond this part of the diameter, mean several particles.
_FRINGES, _BEYOND = 4.0, 0.6


@dataclass(frozen=True, eq=False)
class Selection:
    """What is known of the particle, by which hits are judged.

    profile, fringe : the two tests.
    scales : what their distances are divided by, so that those of the particle are as chance has them.
    brightness : median and standard deviation of its logarithm.
    size_A : median diameter of the particle.
    keep : share of the single hits that each test is to keep.
    """

    profile: ProfileLikeness
    fringe: FringeLikeness
    scales: tuple[float, float]
    brightness: tuple[float, float]
    size_A: float
    keep: float

    @classmethod
    def learn(cls, hits: Evidence, keep: float) -> "Selection | None":
        """Learn the particle from hits of all kinds; None where there are too few that say anything."""
        clear = np.flatnonzero(hits.significance > FAINTEST)
        if len(clear) < FEWEST_HITS:
            return None
        hits = hits.of(clear)
        core = _most_alike(hits)
        selection = cls._of(hits, core, keep)
        for _ in range(_ROUNDS):
            new = selection.passes(hits)
            if new.sum() < FEWEST_HITS // 2 or np.array_equal(new, core):
                break
            core = new
            selection = cls._of(hits, core, keep)
        return selection

    @classmethod
    def _of(cls, hits: Evidence, core: NDArray[np.bool_], keep: float) -> "Selection":
        inner = hits.of(core)
        profile, fringe = ProfileLikeness.of(ring_groups(inner), inner), FringeLikeness.of(inner)
        scales = tuple(
            max(float(np.median(test.distance(inner)) / chdtri(test.n_free, 0.5)), 1e-3)
            for test in (profile, fringe)
        )
        logarithm = np.log(np.maximum(inner.brightness, 1e-3))
        middle = float(np.median(logarithm))
        spread = 1.4826 * float(np.median(np.abs(logarithm - middle)))
        return cls(
            profile, fringe, (scales[0], scales[1]), (middle, max(spread, 0.05)),
            float(np.median(inner.size_A)), keep,
        )  # fmt: skip

    def distances(self, hits: Evidence) -> NDArray[np.float64]:
        """(N, 3) how far hits are from the particle by profile, fringes and brightness; 1 is the limit."""
        of_profile, of_fringes = self.scales
        middle, spread = self.brightness
        too_bright = (np.log(np.maximum(hits.brightness, 1e-3)) - middle) / spread
        return np.stack(
            [
                self.profile.distance(hits) / (of_profile * chdtri(self.profile.n_free, 1 - self.keep)),
                self.fringe.distance(hits) / (of_fringes * chdtri(self.fringe.n_free, 1 - self.keep)),
                np.maximum(too_bright, 0) ** 2 / chdtri(1, 1 - self.keep),
            ],
            axis=1,
        )

    def passes(self, hits: Evidence) -> NDArray[np.bool_]:
        """(N,) which hits all tests take for the particle."""
        return np.asarray((self.distances(hits) <= 1).all(axis=1) & (hits.significance > FAINTEST))

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
