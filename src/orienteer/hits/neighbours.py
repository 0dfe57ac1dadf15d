"""Whether the hits that look most like a hit are of the particle: junk that passes all tests has odd company.

Debris that looks like the particle from some side cannot be told from it by how it looks.  But where it
comes, it comes in all brightnesses: among the hits that look like it there are many too bright or too faint
to be of the particle, and some that do not pass for other reasons.  Among those that look like a hit of the
particle there are few.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

# Of all hits one in so many is a neighbour.
_ONE_IN = 25
_FEWEST = 10
# A share of few neighbours says little: as if so many more were there, none of them suspicious.
_MORE = 20
# Hits that differ in how they look have less to say of those that look like the particle.
_LOOKS_ODD = 0.25
# A hit is of the particle up to this share beyond what hits of the particle have in the middle.
_BEYOND = 0.05
# Hits of the particle that are oddly bright by chance, and those that may be lost for their neighbours.
_ODD_BY_CHANCE, _LOST = 0.01, 0.02
# For each piece of junk with an odd brightness, so many have one that the particle has.
_HIDDEN = 3.0
_FARTHEST = 6.0
_HITS_AT_ONCE = 1024


@dataclass(frozen=True, eq=False)
class Neighbours:
    """n recent hits by F features of how they look, brightness not among them.

    middle, spread : (F,) of the features of the particle.
    places : (n, F) features in standard deviations from the middle.
    suspicion : (n,) 1 for a hit that looks like the particle and has another brightness, less for one that
        looks otherwise, 0 for the others.
    limit : share of suspicion among its neighbours up to which a hit is taken for the particle.
    """

    middle: NDArray[np.float64]
    spread: NDArray[np.float64]
    places: NDArray[np.float32]
    suspicion: NDArray[np.float32]
    limit: float

    @classmethod
    def of(
        cls, features: NDArray[np.float64], looks_alike: NDArray[np.bool_], is_as_bright: NDArray[np.bool_]
    ) -> "Neighbours":
        """Of hits with features (n, F), which look like the particle or not, and are as bright or not."""
        core = features[looks_alike & is_as_bright]
        middle, spread = np.median(core, axis=0), np.maximum(core.std(axis=0), 1e-9)
        suspicion = np.where(looks_alike, np.where(is_as_bright, 0.0, 1.0), _LOOKS_ODD)
        places = _placed(features, middle, spread)
        neighbours = cls(middle, spread, places, suspicion.astype(np.float32), 0.0)
        odd = float((~is_as_bright[looks_alike]).mean())
        # Where there is hardly any junk, hardly any hit may be lost for its neighbours.
        kept = 1 - min(_LOST + _HIDDEN * max(odd - _ODD_BY_CHANCE, 0), 1)
        median, most = (float(x) for x in np.quantile(neighbours.share(core), [0.5, kept]))
        return replace(neighbours, limit=max(_BEYOND + median, most))

    def trust(self, features: NDArray[np.float64]) -> NDArray[np.bool_]:
        """(N,) which hits of these features (N, F) have no more suspicious neighbours than the particle."""
        return np.asarray(self.share(features) <= self.limit)

    def share(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """(N,) share of suspicious ones among the hits nearest to each of these features (N, F)."""
        k = min(max(len(self.places) // _ONE_IN, _FEWEST), len(self.places))
        places = _placed(features, self.middle, self.spread)
        square = (self.places**2).sum(axis=1) / 2
        shares = np.empty(len(places))
        for first in range(0, len(places), _HITS_AT_ONCE):
            some = slice(first, first + _HITS_AT_ONCE)
            # Half of the squared distance, but for what is the same for all neighbours.
            distance = square - places[some] @ self.places.T
            nearest = np.argpartition(distance, k - 1, axis=1)[:, :k]
            shares[some] = self.suspicion[nearest].sum(axis=1) / (k + _MORE)
        return shares


def _placed(
    features: NDArray[np.float64], middle: NDArray[np.float64], spread: NDArray[np.float64]
) -> NDArray[np.float32]:
    return np.clip((features - middle) / spread, -_FARTHEST, _FARTHEST).astype(np.float32)
