"""One round: an iteration of EMC over some of the hits, with the memory of earlier rounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, DeviceName
from orienteer.online.memory import Memory
from orienteer.online.reservoir import Reservoir
from orienteer.reconstruction.course.course import Progress, Turn
from orienteer.reconstruction.emc import Emc
from orienteer.reconstruction.model.compression import Compressed, filter_halves, solve_deposits
from orienteer.reconstruction.model.radial_profile import RadialProfile
from orienteer.reconstruction.orienting.deposit import Deposit
from orienteer.reconstruction.settings import EmcSettings
from orienteer.reconstruction.workspace import Workspace
from orienteer.source.base import Source

# State entries that belong to single hits and are kept from round to round; the others belong to the stage.
_OF_FRAMES = ("quaternion", "model", "confidence", "perplexity", "log_likelihood")
_BY_FRAME = ("fluence", "weight", "grouping_fluence", "plan")
# A number of iterations at which every course regards its stage as settled.
_SETTLED = 2**31


class RoundEmc(Emc):
    """EMC for one round: its caller decides about stages, and its sums are joined with a memory.

    memory : what earlier rounds have merged.
    goes_on : whether the models of an earlier round will be used, so that no random ones are made.
    turn : what the course asks for after the step.
    most_rounds : number of rounds after annealing that settles the stage.  Each round has other hits, so its
        likelihood varies by chance, and does not show well whether the models still improve.
    """

    gathers_momentum = False  # each round has other hits: momentum would carry their noise along
    has_some_frames = True  # a round has only a part of all frames
    may_find_symmetry = False  # finding one would turn the map while people look at it
    has_own_means = False  # earlier rounds are merged relative to the mean of all hits

    def __init__(
        self, source: Source, settings: EmcSettings, *, seed: int, device: DeviceName, memory: Memory,
        goes_on: bool = False,
    ) -> None:  # fmt: skip
        self.memory, self._goes_on = memory, goes_on
        self.turn: Turn = "go on"
        self.most_rounds = np.inf
        super().__init__(source, settings, seed=seed, device=device)
        self.course.most_iterations = 2**62
        self.course.is_patient = False  # another start follows when there are more hits

    def _first_models(self, start: int) -> Array:
        if not self._goes_on:
            return super()._first_models(start)
        return self.xp.ones((self.n_models, *(self.work.edge_voxels,) * 3), dtype=np.float32)

    def solve(self, deposits: list[Deposit]) -> Compressed:
        """Make new models from what this round and earlier ones have merged."""
        prior = self.prior_photons
        solved = solve_deposits(deposits, self.group, prior)
        return filter_halves(self.memory.joined(solved, prior), self.group, prior)

    def progress(self, work: Workspace, judging: NDArray[np.bool_], change: float) -> Progress:
        now = super().progress(work, judging, change)
        return replace(now, iterations_done=_SETTLED) if now.iterations_done >= self.most_rounds else now

    def take_turn(self, turn: Turn) -> str:
        self.turn = turn
        return ""

    def begin(
        self, carried: Mapping[str, Any], profile: RadialProfile, reservoir: Reservoir,
        rows: NDArray[np.int64],
    ) -> None:  # fmt: skip
        """Continue from the last round, with what is known of the hits of this one.

        rows : (n,) rows of the reservoir that hold these frames; nothing is known of new hits yet.
        """
        self.profile = profile
        frames: dict[str, Any] = self.table.state()
        fluence, weight = self.first_fluence(), self.first_weight.copy()
        if reservoir.columns:
            is_old = reservoir.visited[rows] >= 0
            for name in _OF_FRAMES:
                frames[f"frames/{name}"] = reservoir.take(name, rows)
            fluence = np.where(is_old, reservoir.take("fluence", rows), fluence)
            weight = np.where(is_old, reservoir.take("weight", rows), weight)
        self.restore(
            {
                **carried,
                **frames,
                "frames/weight": weight,
                "fluence": fluence,
                "weight": weight,
                "grouping_fluence": fluence,
                "plan": self.plan.order_of_sums,
            }
        )

    def carried(self) -> dict[str, Any]:
        """The part of the state that does not depend on the hits; the next round begins with it."""
        return {
            name: value
            for name, value in self.state().items()
            if name not in _BY_FRAME and not name.startswith("frames/")
        }

    def known_of_frames(self) -> dict[str, NDArray[Any]]:
        """What is known of the hits of this round, (n, ...) by name."""
        columns = {name: getattr(self.table, name) for name in _OF_FRAMES}
        return {**columns, "fluence": self.fluence, "weight": self.table.weight}
