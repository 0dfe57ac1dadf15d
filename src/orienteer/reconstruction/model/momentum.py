"""Momentum: many small steps in the same direction become a few large ones.

With faint frames, an iteration of plain EM covers perhaps a hundredth of the remaining way.  So each step
adds 0.8 of the step before (Polyak's heavy ball).  What remains then shrinks to 0.93 in an iteration if plain
EM leaves 0.99 of it, and to 0.995 if plain EM leaves 0.999.  Quick parts become slower, with 0.89 at best.
The final model is the same.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from orienteer.compute.arrays import Array, array_namespace, to_numpy
from orienteer.reconstruction.model.compression import Compressed

# Share of the step before that is added: about the best if plain EM covers a hundredth of the way at a time.
_SHARE = 0.8


class Momentum:
    """Keeps the models (H, M, n, n, n) before the last step; None: there is no step to add."""

    def __init__(self) -> None:
        self.before: Array | None = None

    def forget(self) -> None:
        """Begin anew, because the next models do not follow from the present ones."""
        self.before = None

    def carry(self, models: Array, found: Compressed) -> Compressed:
        """The new models, plus a share of the step that led to ``models``, with which the iteration began."""
        before, self.before = self.before, models
        if before is None or before.shape != models.shape:
            return found
        xp = array_namespace(models)
        moved = found.models + xp.float32(_SHARE) * (models - before)
        return replace(found, models=xp.maximum(moved, xp.float32(0)))

    def state(self) -> dict[str, Any]:
        """What the next step depends on."""
        return {"momentum": np.zeros(0, dtype=np.float32) if self.before is None else to_numpy(self.before)}

    def restore(self, state: Mapping[str, Any], xp: Any) -> None:
        """Go on from a state, on the device of ``xp``."""
        before = xp.asarray(state.get("momentum", ()), dtype=np.float32)
        self.before = before if before.size else None
