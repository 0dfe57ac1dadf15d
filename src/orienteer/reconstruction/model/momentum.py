"""Momentum: many small steps the same way are taken as a few large ones.

Frames that hardly know their pose move a model by a hundredth of what is still to come in each iteration, or
by less.  So a model goes on from where plain EM would leave it, by a share of what it has moved there
(Nesterov); the share grows from step to step, and where the evidence of the frames falls, it begins anew
(O'Donoghue and Candes).  What plain EM makes a thousandth of in a step is there after a hundred steps and
not after thousands; what it is quick with stays quick; and the model that is reached is the same.

Only what the halves have in common is carried on.  Each half is oriented by the model of the other, so that
what they differ in changes sides in every iteration: carried on, it would grow without end.
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
    evidence : of the frames under the models that the last step began with, in nats per frame.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew: models that come next are not those of before."""
        self.before: Array | None = None
        self.steps, self.evidence = 0, -np.inf

    def carry(self, found: Compressed, evidence: float) -> Compressed:
        """What an iteration has found, carried on in the direction in which models have moved.

        evidence : of the frames under the models that the iteration began with, in nats per frame.
        """
        if evidence < self.evidence:
            self.forget()
        common = found.models.mean(axis=0)
        before, self.before, self.evidence = self.before, common, evidence
        if before is None or before.shape != common.shape:
            return found
        self.steps += 1
        xp = array_namespace(before)
        share = xp.float32(min(self.steps / (self.steps + _SLOW_START), _LARGEST_SHARE))
        moved = found.models + share * (common - before)
        return replace(found, models=xp.maximum(moved, xp.float32(0)))

    def state(self) -> dict[str, Any]:
        """What the next step depends on."""
        return {
            "momentum": np.zeros(0, dtype=np.float32) if self.before is None else to_numpy(self.before),
            "momentum/steps": self.steps,
            "momentum/evidence": self.evidence,
        }

    def restore(self, state: Mapping[str, Any], xp: Any) -> None:
        """Go on from a state, on the device of ``xp``."""
        before = xp.asarray(state.get("momentum", ()), dtype=np.float32)
        self.before = before if before.size else None
        self.steps = int(state.get("momentum/steps", 0))
        self.evidence = float(state.get("momentum/evidence", -np.inf))
