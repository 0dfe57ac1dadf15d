"""What a hit finder has learned about empty shots and hits, and the score that follows from it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.hits.empirical_null import EmpiricalNull
from orienteer.hits.photon_sums import PixelSums, add_frames, sum_pixels
from orienteer.hits.running_sum import RunningSum
from orienteer.hits.score import Score, lit_from, rates
from orienteer.source.patterns import Patterns

# Number of hits that the running mean of hits remembers.
_MEMORY_HITS = 300
# Number of recent scores from which the distribution of empty shots is learned.
N_RECENT = 1024
# Counting noise gives scores of empty shots a width of 1; it is less only if there are hardly any photons.
_LEAST_WIDTH = 0.7
# The background is not learned from shots with a higher score, so that weak hits do not leak into it.
_SURELY_EMPTY = 2.0
# If the strength of the background changes by this share, half of the old background is forgotten.
_CHANGE = 0.1
# With fewer hits than this, the form of a hit is not learned from them.
_LEAST_HITS = 1.0


class HitModel:
    """Running sums over empty shots and hits, and what is derived from them whenever a block is closed.

    group : (P,) group of each pixel, whose pixels have similar backgrounds; -1: unused.
    form : (P,) assumed form of a hit until hits are known; None: no assumption.
    background : (P,) float64, mean photons of an empty shot.
    score, null, threshold : see :class:`Score` and :class:`EmpiricalNull`.
    """

    def __init__(
        self,
        group: NDArray[np.int64],
        form: NDArray[np.float64] | None,
        memory: float,
        false_hits: float,
        threshold: float,
    ) -> None:
        n_pixels = len(group)
        self._form = form
        self._group, self._false_hits, self._asked_threshold = group, false_hits, threshold
        self.used = group >= 0
        self.empty = RunningSum(n_pixels, memory)
        self.hit = RunningSum(n_pixels, _MEMORY_HITS)
        # Sums of the photons of empty shots, and of their squares.
        self.strength = RunningSum(2, memory)
        self.recent, self.added_scores = np.zeros(0), np.zeros(0)
        self.derive()

    def derive(self) -> None:
        """Compute background, score and threshold from the running sums."""
        self.background = rates(self.empty.sums, self.empty.n, self._group)
        # Until hits are known, assume that they have as many photons as the background.
        signal = None if self._form is None else self._form * self.background.sum()
        if self.hit.n >= _LEAST_HITS:
            signal = np.maximum(rates(self.hit.sums, self.hit.n, self._group) - self.background, 0)
        mean, square = self.strength.sums / max(self.strength.n, 1)
        variance = (square - mean * mean - mean) / mean**2 if mean > 0 else 0.0
        if signal is not None and not signal.any():
            signal = None
        self.score = Score.between(self.background, signal, max(variance, 0.0))
        self.lit_from = lit_from(self.background)
        self.null = EmpiricalNull.of(self.recent, _LEAST_WIDTH) if len(self.recent) else EmpiricalNull()
        if self._asked_threshold > 0:
            self.threshold = self._asked_threshold
        else:
            self.threshold = self.null.threshold(self.recent, self._false_hits)

    def sums(self, patterns: Patterns) -> PixelSums:
        """The sums over pixels from which the score of each shot is computed."""
        return sum_pixels(patterns, self.used, self.lit_from, self.score.weight)

    def raw(self, sums: PixelSums) -> NDArray[np.float64]:
        """Scores (N,) from the running sums alone, not yet standardised by recent empty shots."""
        return self.score.of(sums.weighted, sums.photons)

    def standardised(self, sums: PixelSums) -> NDArray[np.float64]:
        """Scores (N,) in standard deviations of recent empty shots."""
        return self.null.standardised(self.raw(sums))

    def learn(
        self,
        patterns: Patterns,
        sums: PixelSums,
        empty: NDArray[np.bool_],
        is_hit: NDArray[np.bool_],
    ) -> NDArray[np.float64]:
        """Add shots, which count once the block is closed; returns the sum (P,) over the empty ones."""
        self.added_scores = np.concatenate([self.added_scores, self.raw(sums)])
        of_empty = np.zeros_like(self.empty.added)
        add_frames(patterns, empty.astype(np.float64), of_empty)
        self.empty.added += of_empty
        self.empty.n_added += float(empty.sum())
        photons = sums.photons[empty].astype(np.float64)
        self.strength.added += photons.sum(), photons @ photons
        self.strength.n_added += len(photons)
        factor = self.factor(sums, is_hit)
        add_frames(patterns, factor, self.hit.added)
        self.hit.n_added += float(factor.sum())
        return of_empty

    def factor(self, sums: PixelSums, is_hit: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Weight of each shot (N,) in the mean hit: 1, or less for hits brighter than a typical one.

        The few brightest hits, which are often droplets, would otherwise dominate the mean.
        """
        more = np.maximum(sums.weighted - self.score.mean, 1e-12)
        return np.where(is_hit, np.minimum(self.score.of_signal / more, 1.0), 0.0)

    def surely_empty(self, z: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which shots, by their scores (N,), the background may be learned from."""
        return z < min(_SURELY_EMPTY, self.threshold)

    def close(self) -> None:
        """Close a block: all added shots count, and the old background fades faster if it has changed."""
        self.recent = np.concatenate([self.recent, self.added_scores])[-N_RECENT:]
        self.added_scores = np.zeros(0)
        shift = max(abs(self.null.centre) - 1, 0)
        # A change of the strength alone may not shift the scores, so it is tested separately.
        keep = 1 / (1 + shift**2 + self._change_of_strength())
        self.empty.close(keep)
        self.strength.close(keep)
        self.hit.close()
        self.derive()

    def _change_of_strength(self) -> float:
        """Squared change of the background's strength in the added shots; at 1, half of the old is forgotten.

        Relative to _CHANGE.  Up to two standard deviations count as chance, since few photons vary much.
        """
        known, new = self.strength, self.strength.n_added
        if not (new and known.sums[0] > 0):
            return 0.0
        mean = known.sums[0] / known.n
        change = known.added[0] / new / mean - 1
        chance = (1 / mean + self.score.variance) * (1 / new + 1 / known.n)
        return float(max(change**2 - 4 * chance, 0.0) / _CHANGE**2)

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that the next score depends on, as arrays for ``restore``."""
        return {
            **self.empty.state("empty"),
            **self.hit.state("hit"),
            **self.strength.state("strength"),
            "recent": self.recent.copy(),
            "added_scores": self.added_scores.copy(),
        }

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a saved state."""
        self.empty.restore("empty", state)
        self.hit.restore("hit", state)
        self.strength.restore("strength", state)
        self.recent, self.added_scores = np.array(state["recent"]), np.array(state["added_scores"])
        self.derive()
