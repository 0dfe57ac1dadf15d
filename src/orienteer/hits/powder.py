"""Powder sums: all hits, and all empty shots, of a run in one picture each."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.hits.photon_sums import add_frames
from orienteer.source.patterns import Patterns


class PowderSums:
    """Photons summed over shots since the run began.

    hits, empty : (P,) float64, exact sums of photons.
    n_hits, n_empty : number of shots in these sums.
    """

    def __init__(self, n_pixels: int) -> None:
        self.hits, self.empty = np.zeros(n_pixels), np.zeros(n_pixels)
        self.n_hits = self.n_empty = 0

    def add(
        self,
        patterns: Patterns,
        is_hit: NDArray[np.bool_],
        summed: NDArray[np.bool_] | None = None,
        sums: NDArray[np.float64] | None = None,
    ) -> None:
        """Add every shot to one of the two sums.

        summed : (N,) empty shots whose sum is already known: ``sums`` (P,).
        """
        add_frames(patterns, is_hit.astype(np.float64), self.hits)
        left = ~is_hit if summed is None else ~is_hit & ~summed
        add_frames(patterns, left.astype(np.float64), self.empty)
        if sums is not None:
            self.empty += sums
        n_hits = int(is_hit.sum())
        self.n_hits += n_hits
        self.n_empty += len(is_hit) - n_hits

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything as arrays."""
        return {
            "powder_hits": self.hits.copy(),
            "powder_empty": self.empty.copy(),
            "powder_n": np.array([self.n_hits, self.n_empty], np.int64),
        }

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a saved state."""
        self.hits, self.empty = np.array(state["powder_hits"]), np.array(state["powder_empty"])
        self.n_hits, self.n_empty = (int(n) for n in state["powder_n"])
