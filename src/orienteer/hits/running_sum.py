"""Running sums over the shots of a stream, in which old shots fade."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray


class RunningSum:
    """Sums of arrays (P,) over shots.  Added shots count once their block is closed; later blocks fade them.

    n : number of shots in the sums, faded in the same way.
    """

    def __init__(self, length: int, memory: float) -> None:
        self.memory = memory
        self.sums, self.n = np.zeros(length), 0.0
        self.added, self.n_added = np.zeros(length), 0.0

    def close(self, keep: float = 1.0) -> None:
        """Add the shots of the block; of the earlier sums, at most the share ``keep`` remains."""
        kept = min(keep, float(np.exp(-self.n_added / self.memory)))
        self.sums = self.sums * kept + self.added
        self.n = self.n * kept + self.n_added
        self.added, self.n_added = np.zeros_like(self.added), 0.0

    def state(self, name: str) -> dict[str, NDArray[np.float64]]:
        """Everything as arrays whose names begin with ``name``."""
        return {
            f"{name}_sums": self.sums.copy(),
            f"{name}_added": self.added.copy(),
            f"{name}_n": np.array([self.n, self.n_added]),
        }

    def restore(self, name: str, state: Mapping[str, NDArray[np.float64]]) -> None:
        """Continue from a saved state."""
        self.sums, self.added = np.array(state[f"{name}_sums"]), np.array(state[f"{name}_added"])
        self.n, self.n_added = (float(n) for n in state[f"{name}_n"])
