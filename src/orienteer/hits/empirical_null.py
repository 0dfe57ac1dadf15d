"""The distribution of the scores of empty shots, learned from shots that may be empty or hits.

After B. Efron, Large-scale simultaneous hypothesis testing: the choice of a null hypothesis, J. Am. Stat.
Assoc. 99, 96 (2004), and Y. Benjamini and Y. Hochberg, Controlling the false discovery rate, J. R. Stat. Soc.
B 57, 289 (1995).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

# The empty shots are the lowest cluster of scores with at least this share of all shots.  A smaller cluster
# below it comes from shots without a pulse; the hits above it may outnumber the empty shots.
LEAST_SHARE = 0.2
# A cluster counts if it is at least this dense, relative to the densest.
_LEAST_DENSITY = 1 / 3
# Scores beyond these, in standard deviations from the centre, may be hits, or shots without a pulse.
_OTHERS_ABOVE, _OTHERS_BELOW = 2.5, -4.0
_ROUNDS = 40
_HIGHEST = 12.0


@dataclass(frozen=True)
class EmpiricalNull:
    """Scores of empty shots are normal with this centre and width; ``share`` of all shots are empty."""

    centre: float = 0.0
    width: float = 1.0
    share: float = 1.0

    @classmethod
    def of(cls, scores: NDArray[np.float64], least_width: float = 1e-12) -> "EmpiricalNull":
        """Fit a normal distribution to the lowest cluster of scores (N,), with a flat one for the rest.

        least_width : smallest width; shots with hardly any photons have nearly equal scores.
        """
        x = np.sort(scores)
        n, k = len(x), max(int(LEAST_SHARE * len(x)), 2)
        if n <= k or x[-1] <= x[0]:
            return cls(float(x[0]) if n else 0.0, max(1.0, least_width))
        widths = x[k:] - x[:-k]
        # Equal scores, which shots of few photons have, must not look infinitely dense.
        narrowest = max(float(widths.min()), 1e-3 * (x[-1] - x[0]) / n, 1e-12)
        dense = np.flatnonzero(widths <= narrowest / _LEAST_DENSITY)
        ends = np.flatnonzero(np.diff(dense) > 1)
        heap = dense[: ends[0] + 1] if len(ends) else dense
        first = heap[np.argmin(widths[heap])]
        centre = float(x[first : first + k + 1].mean())
        # Below the centre nearly all shots are empty; half of a normal distribution lies within 0.67 sigma.
        width = max(
            float(np.median(np.abs(centre - x[: first + k // 2 + 1]))) / 0.6745, narrowest, least_width
        )
        share = 0.8
        for _ in range(_ROUNDS):
            z = (x - centre) / width
            normal = share * np.exp(-0.5 * z * z) / (width * np.sqrt(2 * np.pi))
            # The flat part is 0 near the centre: there it could not be separated, and would narrow the fit.
            flat = ((z > _OTHERS_ABOVE) | (z < _OTHERS_BELOW)) / (x[-1] - x[0])
            empty = normal / np.maximum(normal + (1 - share) * flat, 1e-300)
            total = max(float(empty.sum()), 1e-12)
            centre = float(empty @ x) / total
            width = max(float(np.sqrt(empty @ (x - centre) ** 2 / total)), narrowest / 10, least_width)
            share = min(total / n, 1 - 1 / (2 * n))
        return cls(centre, width, share)

    def standardised(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """The scores (N,) in standard deviations above those of empty shots."""
        return (scores - self.centre) / self.width

    def threshold(self, scores: NDArray[np.float64], false_hits: float) -> float:
        """The lowest standardised score above which at most this share of these shots (N,) is empty."""
        z = np.sort(self.standardised(scores))
        steps = np.arange(_HIGHEST, 1.5, -0.05)
        n_above = np.maximum(len(z) - np.searchsorted(z, steps), 1)
        n_empty = len(z) * self.share * ndtr(-steps)
        refused = np.flatnonzero(n_empty > false_hits * n_above)
        return float(steps[max(refused[0] - 1, 0)] if len(refused) else steps[-1])
