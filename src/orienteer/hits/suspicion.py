"""How likely a hit that looks like the particle is junk: junk has any brightness, the particle about one.

A single piece of debris that happens to look like the particle cannot be recognised from its pattern alone.
But if many hits with similar features are far too bright or too faint for the particle, hits with these
features are suspicious.  For hits with features x, the brightness y, in standard deviations above that of the
particle, is distributed as

    (1 - π(x)) N(y; μ(x), σ) + π(x) g(y),        ln π / (1 - π) = h₀ + Σ h_m exp(-|x - x_m|² / 2 w²),

where the normal distribution N describes the particle, and the wider normal distribution g junk.  A particle
may be brighter from some sides than from others: μ(x), a sum of bells like ln π / (1 - π), follows this.
Expectation maximisation finds the heights of the bells, σ and g.  It computes the chance of each hit to be
junk from π, N and g; then it fits these chances by logistic regression on the features, and the brightness by
linear regression, both with the Gaussian process prior of the bells.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

# Largest number of hits that carry a bell; up to half of them have an odd brightness.
_MARKS = 150
# Width of a bell per root of the number of features; prior precision of the log odds, and of the particle's
# brightness, as functions of the features.
_WIDTH, _STIFFNESS, _STIFFNESS_OF_BRIGHTNESS = 1.4, 0.1, 3.0
_ROUNDS, _STEPS = 12, 2
# The brightness of a hit is odd beyond this many standard deviations.
_ODD = 2.6
# Starting values: chance to be junk of hits with odd and with usual brightness, and log odds of junk.
_ODD_CHANCE, _USUAL_CHANCE, _FIRST_ODDS = 0.9, 0.05, -2.0
# Largest deviation of the particle's mean brightness from any side, and smallest scatter about this mean.
_MOST_BY_SIDE, _LEAST_SCATTER = 2.5, 0.7
# Brightness of junk: smallest standard deviation, its prior value, and how many hits this prior counts as.
_LEAST_SPREAD, _FIRST_SPREAD, _FIRST_HITS = 2.5, 3.0, 3.0
# A hit is taken for the particle up to this chance to be junk.  With few hits, n, the second number over n is
# added, but the limit never exceeds the third.
_TAKEN_UP_TO, _MORE_OF_FEW, _NEVER_TAKEN = 0.25, 30.0, 0.9
# Hits beyond this many standard deviations are junk whatever their features, except this share of all hits.
_FAR, _FAR_BY_CHANCE = 4.0, 0.003
# Share of all hits that may be lost even without junk; and hits that may be lost for each hidden piece of
# junk, because its features are not known exactly.
_LOST, _LOST_FOR_JUNK = 0.02, 1.5
_FARTHEST, _BRIGHTEST, _LARGEST_ODDS = 6.0, 8.0, 12.0
_JITTER = 1e-3


@dataclass(frozen=True, eq=False)
class Suspicion:
    """What is known about junk that looks like the particle, as a function of F features of the hits.

    middle, spread : (F,) of the features of the particle.
    marks : (M, F) features of some hits, in units of spread from the middle: the centres of the bells.
    heights : (M + 1,) a constant and the heights of the bells, for the log odds of junk.
    junk : (2,) mean and standard deviation of the brightness of junk, in standard deviations of the
        particle's brightness from its middle.
    course : (M + 1,) a constant and the heights of the bells, for the mean brightness of the particle.
    scatter : standard deviation of the particle's brightness about this mean.
    limit : chance to be junk up to which a hit is taken for the particle.
    """

    middle: NDArray[np.float64]
    spread: NDArray[np.float64]
    marks: NDArray[np.float64]
    heights: NDArray[np.float64]
    junk: NDArray[np.float64]
    course: NDArray[np.float64]
    scatter: float
    limit: float

    @classmethod
    def of(cls, features: NDArray[np.float64], brightness: NDArray[np.float64]) -> "Suspicion":
        """Learned from hits that look like the particle.

        features : (n, F).
        brightness : (n,) in standard deviations from that of the particle.
        """
        if not len(brightness):
            return cls._of_nothing(features.shape[1])
        is_odd = np.abs(brightness) > _ODD
        usual = features[~is_odd] if (~is_odd).any() else features
        middle, spread = np.median(usual, axis=0), np.maximum(usual.std(axis=0), 1e-9)
        places = _placed(features, middle, spread)
        odd = _some(np.flatnonzero(is_odd), _MARKS // 2)
        marks = places[np.concatenate([odd, _some(np.flatnonzero(~is_odd), _MARKS - len(odd))])]
        bells = _bells(places, marks)
        prior = np.zeros((bells.shape[1], bells.shape[1]))
        prior[1:, 1:] = _bells(marks, marks)[:, 1:] + _JITTER * np.eye(len(marks))
        heights = np.zeros(bells.shape[1])
        heights[0] = _FIRST_ODDS
        chance, junk = np.where(is_odd, _ODD_CHANCE, _USUAL_CHANCE), np.array([0.0, _FIRST_SPREAD])
        for _ in range(_ROUNDS):
            for _ in range(_STEPS):
                heights = _regression_step(bells, chance, _STIFFNESS * prior, heights)
            course, scatter = _brightness_of_particle(bells, brightness, chance, prior)
            chance = _chance(bells, brightness, heights, course, scatter, junk)
            junk = _brightness_of_junk(brightness, chance)
        limit = _limit(brightness, _chance(bells, brightness, heights, course, scatter, junk), junk)
        return cls(middle, spread, marks, heights, junk, course, scatter, limit)

    @classmethod
    def _of_nothing(cls, n_features: int) -> "Suspicion":
        """The state before there are hits: the same chance for all features."""
        middle, spread, marks = np.zeros(n_features), np.ones(n_features), np.zeros((0, n_features))
        junk = np.array([0.0, _FIRST_SPREAD])
        return cls(middle, spread, marks, np.array([_FIRST_ODDS]), junk, np.zeros(1), 1.0, _NEVER_TAKEN)

    def trust(self, features: NDArray[np.float64], brightness: NDArray[np.float64]) -> NDArray[np.bool_]:
        """(N,) which of these hits are taken for the particle."""
        return np.asarray(self.chance(features, brightness) <= self.limit)

    def chance(self, features: NDArray[np.float64], brightness: NDArray[np.float64]) -> NDArray[np.float64]:
        """(N,) probability that hits that look like the particle are junk.

        features : (N, F).
        brightness : (N,) in standard deviations from that of the particle.
        """
        bells = _bells(_placed(features, self.middle, self.spread), self.marks)
        return _chance(bells, brightness, self.heights, self.course, self.scatter, self.junk)


def _some(rows: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """At most ``most`` of the rows, evenly spread."""
    return rows[:: max(1, -(-len(rows) // max(most, 1)))][:most]


def _placed(
    features: NDArray[np.float64], middle: NDArray[np.float64], spread: NDArray[np.float64]
) -> NDArray[np.float64]:
    return np.clip((features - middle) / spread, -_FARTHEST, _FARTHEST)


def _bells(places: NDArray[np.float64], marks: NDArray[np.float64]) -> NDArray[np.float64]:
    """(N, M + 1) ones, and exp(-|x - x_m|² / 2 w²) with w = _WIDTH √F for F features."""
    square = (places**2).sum(axis=1)[:, None] + (marks**2).sum(axis=1) - 2 * places @ marks.T
    return np.column_stack([np.ones(len(places)), np.exp(-square / (2 * _WIDTH**2 * places.shape[1]))])


def _log_odds(bells: NDArray[np.float64], heights: NDArray[np.float64]) -> NDArray[np.float64]:
    """(N,) ln π / (1 - π) from the features."""
    return np.clip(bells @ heights, -_LARGEST_ODDS, _LARGEST_ODDS)


def _chance(
    bells: NDArray[np.float64], brightness: NDArray[np.float64], heights: NDArray[np.float64],
    course: NDArray[np.float64], scatter: float, junk: NDArray[np.float64],
) -> NDArray[np.float64]:  # fmt: skip
    """(N,) probability to be junk, from the bells (N, M + 1) of the features and the brightness (N,)."""
    y, mean = np.clip(brightness, -_BRIGHTEST, _BRIGHTEST), _mean(bells, course)
    # ln g(y) / N(y; μ, σ)
    ratio = ((y - mean) / scatter) ** 2 / 2 - ((y - junk[0]) / junk[1]) ** 2 / 2 - np.log(junk[1] / scatter)
    return np.asarray(expit(_log_odds(bells, heights) + ratio))


def _mean(bells: NDArray[np.float64], course: NDArray[np.float64]) -> NDArray[np.float64]:
    """(N,) mean brightness of the particle for these features."""
    return np.clip(bells @ course, -_MOST_BY_SIDE, _MOST_BY_SIDE)


def _brightness_of_particle(
    bells: NDArray[np.float64], brightness: NDArray[np.float64], chance: NDArray[np.float64],
    prior: NDArray[np.float64],
) -> tuple[NDArray[np.float64], float]:  # fmt: skip
    """Course and scatter of N; the weight of a hit (n,) that is not far off is its chance not to be junk."""
    weight = np.where(np.abs(brightness) <= _FAR, 1 - chance, 0)
    curvature = _products(bells, weight) + _STIFFNESS_OF_BRIGHTNESS * prior
    slope = bells.T @ (weight * brightness)
    course = np.asarray(np.linalg.solve(curvature + 1e-3 * np.eye(len(prior)), slope), np.float64)
    square = (weight * (brightness - _mean(bells, course)) ** 2).sum() / max(weight.sum(), 1e-9)
    # A scatter above 1, more than from all sides together, must be due to junk.
    return course, float(np.clip(np.sqrt(square), _LEAST_SCATTER, 1))


def _brightness_of_junk(brightness: NDArray[np.float64], chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """(2,) mean and standard deviation of g; each hit has its chance to be junk as weight."""
    y, n = np.clip(brightness, -_BRIGHTEST, _BRIGHTEST), chance.sum() + _FIRST_HITS
    middle = (chance * y).sum() / n
    square = ((chance * (y - middle) ** 2).sum() + _FIRST_HITS * _FIRST_SPREAD**2) / n
    return np.array([middle, max(np.sqrt(square), _LEAST_SPREAD)])


def _limit(brightness: NDArray[np.float64], chance: NDArray[np.float64], junk: NDArray[np.float64]) -> float:
    """Chance up to which hits are taken for the particle, from hits (n,); with little junk, few may be lost.

    Views from which the particle has another or a more variable brightness may be mistaken for junk.  But
    junk also has brightnesses that the particle never has: the number of hits there, divided by the share of
    g there, estimates how much junk there is in all.
    """
    limit = min(_TAKEN_UP_TO + _MORE_OF_FEW / len(brightness), _NEVER_TAKEN)
    is_far = np.abs(brightness) > _FAR
    share_far = ndtr((-_FAR - junk[0]) / junk[1]) + ndtr((junk[0] - _FAR) / junk[1])
    hidden = max(is_far.sum() - _FAR_BY_CHANCE * len(brightness), 0) * (1 - share_far) / share_far
    most = int(_LOST * len(brightness) + _LOST_FOR_JUNK * hidden)
    near = np.sort(chance[~is_far])
    return max(limit, float(near[-1 - most])) if most < len(near) else limit


def _regression_step(
    bells: NDArray[np.float64], chance: NDArray[np.float64], prior: NDArray[np.float64],
    heights: NDArray[np.float64],
) -> NDArray[np.float64]:  # fmt: skip
    """One Newton step of the logistic regression of the chances (n,) on the bells (n, M + 1)."""
    p = expit(_log_odds(bells, heights))
    curvature = _products(bells, p * (1 - p)) + prior + 1e-6 * np.eye(len(heights))
    slope = bells.T @ (chance - p) - prior @ heights
    return np.asarray(heights + np.linalg.solve(curvature, slope))


def _products(bells: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """(M + 1, M + 1) sums over hits of the products of two bells, each hit with a weight (n,) of at least 0.

    Written as a matrix times its own transpose, which NumPy knows to be symmetric: half the time.
    """
    weighted = bells * np.sqrt(weight)[:, None]
    return np.asarray(weighted.T @ weighted)
