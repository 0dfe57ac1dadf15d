"""Momentum: many small steps the same way are taken as a few large ones.

Frames that hardly know their pose move a model by a hundredth of what is still to come in each iteration.
Where every step goes on with a share of 0.8 of the one before (Polyak's heavy ball), what is left shrinks to
0.93 in a step where plain EM leaves 0.99 of it, and to 0.995 where it leaves 0.999.  What plain EM is quick
with takes longer, 0.89 at best; the model that is reached is the same.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from orienteer.compute.arrays import Array, array_namespace, to_numpy
from orienteer.reconstruction.model.compression import Compressed

# Of the step before: about best where a hundredth of the way is made in an iteration of plain EM.
_SHARE = 0.8


class Momentum:
    """The models (H, M, n, n, n) before the last step; None: there is nothing to go on with."""

    def __init__(self) -> None:
        self.before: Array | None = None

    def forget(self) -> None:
        """Begin anew: models that come next are not those of before."""
        self.before = None

    def carry(self, models: Array, found: Compressed) -> Compressed:
        """What an iteration has found, and a share of the step that led to the ``models`` it began with."""
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
