"""Momentum: many small steps the same way are taken as a few large ones.

Frames that hardly know their pose move a model by a hundredth of what is still to come in each iteration, or
by less.  So a model goes on from where plain EM would leave it, by a share of what it has moved there
(Nesterov); the share grows from step to step, and begins anew where a step leads back (O'Donoghue and
Candes).  What plain EM makes a thousandth of in a step is there after a hundred steps and
not after thousands; what it is quick with stays quick; and the model that is reached is the same.

Only what the halves have in common is carried on.  Each half is oriented by the model of the other, so that
what they differ in changes sides in every iteration: carried on, it would grow without end.  The mean of what
it was and what it is has come to rest.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from orienteer.compute.arrays import Array, array_namespace, to_numpy
from orienteer.reconstruction.model.compression import Compressed

# Share of the last step that the next one goes on with: after k steps k / (k + 3), and at most this.
_SLOW_START, _LARGEST_SHARE = 3.0, 0.95


class Momentum:
    """What the last iteration has found, before it was carried on.

    before : (M, n, n, n) mean of the halves; None: there is nothing to go on with.
    steps : since it began.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew: models that come next are not those of before."""
        self.before: Array | None = None
        self.steps = 0

    def carry(self, models: Array, found: Compressed) -> Compressed:
        """What an iteration has found that began with ``models``, carried on in the direction of its way.

        models : (H, M, n, n, n).
        """
        xp = array_namespace(models)
        begun, come = models.mean(axis=0), found.models.mean(axis=0)
        apart = ((models - begun) + (found.models - come)) / 2
        share = self._share(begun, come)
        if share > 0:
            apart += xp.float32(share) * (come - self.before)
        self.before = come
        return replace(found, models=xp.maximum(come + apart, xp.float32(0)))

    def _share(self, begun: Array, come: Array) -> float:
        """How much of the way from what was found before to what has come is gone once more."""
        if self.before is None or self.before.shape != come.shape:
            self.steps = 0
        elif float(((come - begun) * (come - self.before)).sum()) < 0:
            self.steps = 0
        else:
            self.steps += 1
        return min(self.steps / (self.steps + _SLOW_START), _LARGEST_SHARE)

    def state(self) -> dict[str, Any]:
        """What the next step depends on."""
        return {
            "momentum": np.zeros(0, dtype=np.float32) if self.before is None else to_numpy(self.before),
            "momentum/steps": self.steps,
        }

    def restore(self, state: Mapping[str, Any], xp: Any) -> None:
        """Go on from a state, on the device of ``xp``."""
        before = xp.asarray(state.get("momentum", ()), dtype=np.float32)
        self.before = before if before.size else None
        self.steps = int(state.get("momentum/steps", 0))
