"""What earlier rounds have merged, remembered and slowly forgotten: the sums of stepwise EM.

A round sees only a part of the hits.  Its sums s are added to the remembered sums S of earlier rounds,
S <- (1 - g) S + s, where g is the share of all hits that the round has seen.  So S approaches the weight of
all hits, and after a round of all hits (g = 1) nothing older is left: that is an iteration of batch EM.  A
lower limit of g keeps the first minutes from freezing the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from orienteer.compute.arrays import to_numpy
from orienteer.reconstruction.model.compression import Solved


class Memory:
    """The merged, unfiltered intensity of each half, with its exposure.

    share : g of the next round; 1: nothing is remembered.
    """

    def __init__(self) -> None:
        self.share = 1.0
        self._kept: Solved = []

    def joined(self, solved: Solved, prior: float) -> Solved:
        """Join the intensities of a round with the memory; the result is also the new memory.

        Cubes of another size belong to another stage: then the memory is replaced.

        prior : photons of the radial mean that every voxel of the round started with.
        """
        kept = self._kept
        if self.share < 1 and kept and kept[0][0][0].shape == solved[0][0][0].shape:
            left = 1 - self.share
            self._kept = solved = [
                [_mean(old, new, left, prior) for old, new in zip(olds, news, strict=True)]
                for olds, news in zip(kept, solved, strict=True)
            ]
        else:
            # An exposure is a part of the sums of a round; without a copy it would keep them all in memory.
            self._kept = [[(values, exposure.copy()) for values, exposure in half] for half in solved]
        return solved

    def forget(self) -> None:
        """Forget everything, as the models have changed."""
        self._kept = []

    def state(self) -> dict[str, Any]:
        """All intensities and exposures by name."""
        state: dict[str, Any] = {"memory/halves": len(self._kept)}
        for h, half in enumerate(self._kept):
            for m, (values, exposure) in enumerate(half):
                state[f"memory/{h}/{m}/values"] = to_numpy(values)
                state[f"memory/{h}/{m}/exposure"] = to_numpy(exposure)
        return state

    def restore(self, state: Mapping[str, Any], xp: Any) -> None:
        """Continue from a state, with arrays of the library xp."""
        self._kept = []
        for h in range(int(state["memory/halves"])):
            half, m = [], 0
            while f"memory/{h}/{m}/values" in state:
                names = (f"memory/{h}/{m}/values", f"memory/{h}/{m}/exposure")
                values, exposure = (xp.asarray(state[name]) for name in names)
                half.append((values, exposure))
                m += 1
            self._kept.append(half)


def _mean(old: tuple[Any, Any], new: tuple[Any, Any], left: float, prior: float) -> tuple[Any, Any]:
    """The mean of two intensities, weighted by exposure (the old one's times ``left``), and its exposure."""
    before, now = left * old[1], new[1]
    total = before + now + prior
    return ((before * old[0] + (now + prior) * new[0]) / total).astype(np.float32), before + now
