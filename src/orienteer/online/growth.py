"""The state of a growing reconstruction between two rounds: hits, models, and what is known of each hit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import DeviceName, choose_device, namespace_of_device
from orienteer.compute.machine import memory_GiB
from orienteer.online.arrivals import Arrivals, Select
from orienteer.online.final_emc import FinalEmc
from orienteer.online.memory import Memory
from orienteer.online.reservoir import SLACK, Reservoir
from orienteer.online.round_emc import RoundEmc
from orienteer.reconstruction.handing_over import LearntMap
from orienteer.reconstruction.model.halves import half_of_events, hash_of_events, sentinels_of_events
from orienteer.reconstruction.model.radial_profile import RadialProfile
from orienteer.reconstruction.plan import Plan
from orienteer.reconstruction.results import intensity_volumes
from orienteer.reconstruction.settings import EmcSettings
from orienteer.run.online_settings import OnlineSettings
from orienteer.source.base import Source
from orienteer.source.part import PartOfSource
from orienteer.volume.volume import Volume

# Hits of a round.  Slicing the model for all poses, in every round, costs as much as a few thousand hits.
_ROUND = {"cpu": 4000, "cuda": 20_000}
# If more new hits wait than a round has, it takes up to this many times its usual number.
_MOST_NEW = 4
# No start is made with fewer hits than this.
_FEWEST = 20
# After a start that has found nothing, the next one is made when the hits have grown by this factor.
_MORE = 1.5
# Salt of the hash that orders hits last looked at in the same round.
_SALT = 3


class Growth:
    """A growing reconstruction, with everything that its next step depends on.

    source : hits with a detector and a wavelength; more hits may come.
    settings, online : settings of the engine, and of the growth.
    select : chooses hits by their columns.
    """

    def __init__(
        self, source: Source, settings: EmcSettings, online: OnlineSettings, *, seed: int = 0,
        device: DeviceName = "auto", select: Select | None = None,
    ) -> None:  # fmt: skip
        self.settings, self.online, self.seed = settings, online, seed
        self.device = choose_device(device)
        self.source = source
        self.arrivals = Arrivals(source, select)
        needed = (settings.known_orientations_column,) if settings.known_orientations_column else ()
        self.reservoir, self.memory = Reservoir(source, needed), Memory()
        self.round_hits = online.round_hits or _ROUND[self.device]
        self._remarks: list[str] = []
        self.is_over = False
        self._n_rounds = self._n_starts = self._n_prepared = self._failed_at = 0
        self._slow_stage = 0
        self._is_settled = self._is_changed = False
        self._diameter_A = settings.diameter_A
        self._carried: dict[str, Any] = {}
        self._profile: RadialProfile | None = None
        self._learnt: LearntMap | None = None
        self._plan: Plan | None = None
        self._final: FinalEmc | None = None

    # The stream -------------------------------------------------------------------------------------------

    def look(self, is_over: bool, excluded: NDArray[np.uint64] | None = None) -> None:
        """Look for hits.

        is_over : whether the source already has every hit that will ever come.
        excluded : (n,) events that take no part from now on; None: unchanged.
        """
        if self._final is not None:
            return
        if excluded is not None:
            self._exclude(excluded)
        n_waiting, self.is_over = self.arrivals.look(), is_over
        if not self._carried and (is_over or len(self.arrivals.chosen) + n_waiting >= self._n_needed):
            self._take_in(n_waiting)

    @property
    def has_work(self) -> bool:
        """Whether a step can be made now."""
        if self.finished:
            return False
        if self._final is not None or self._ends:
            return True
        if not self._carried:
            return len(self.arrivals.chosen) >= self._n_needed
        return self.arrivals.n_waiting > 0 or self._is_changed or not self._is_settled

    @property
    def _n_needed(self) -> int:
        """Number of hits needed for the next start."""
        return max(self.online.first_hits, int(_MORE * self._failed_at))

    @property
    def _has_all(self) -> bool:
        """Whether the last hit has come and none waits."""
        return self.is_over and not self.arrivals.n_waiting

    @property
    def _ends(self) -> bool:
        """Whether the rest is done with all hits at once."""
        return self._has_all and self.online.finish != "no" and len(self.arrivals.chosen) >= _FEWEST

    @property
    def iteration(self) -> int:
        """Number of rounds and of final iterations done."""
        return self._n_rounds + (0 if self._final is None else self._final.iteration)

    @property
    def finished(self) -> bool:
        """Whether the last hit has come and nothing is left to do."""
        if self._final is not None:
            return self._final.finished
        is_idle = (
            self._is_settled and not self._is_changed
            if self._carried
            else len(self.arrivals.chosen) < self._n_needed
        )
        return self._has_all and not self._ends and is_idle

    @property
    def reason(self) -> str:
        """Why it is over, in one sentence."""
        if self._final is not None:
            return self._final.reason
        if not self.finished:
            return ""
        n_hits = len(self.arrivals.chosen)
        if n_hits >= _FEWEST:
            return "The last hit has come."
        return f"{n_hits or 'No'} hit{'' if n_hits == 1 else 's'} came, too few for a map."

    @property
    def at_limit(self) -> bool:
        """Whether it ended at the limit of iterations."""
        return self._final is not None and self._final.at_limit

    @property
    def plan(self) -> Plan | None:
        """The plan of the last round, or of the final iterations; None before the first round."""
        return self._plan if self._final is None else self._final.plan

    # Hits and the engine ----------------------------------------------------------------------------------

    def _take_in(self, most: int) -> None:
        """Take in at most ``most`` of the next hits; before a start, only as many as are kept."""
        while most > 0 and self.arrivals.n_waiting > 0:
            place, patterns = self.arrivals.take(min(most, self.round_hits))
            if patterns is not None:
                self.reservoir.add(place, patterns)
                most -= len(place)
                self._plan_room()
                if not self._carried:
                    self.reservoir.trim()

    def _take_in_new(self) -> None:
        """Take in as many waiting hits as the next round can look at."""
        self._take_in(_MOST_NEW * self.round_hits - self.reservoir.n_unseen)

    def _plan_room(self) -> None:
        """Decide from the size of the first hits how many are kept, so that a round's new hits also fit."""
        if self.reservoir.capacity:
            return
        room = (self.online.memory_GiB or memory_GiB()[1] / 4) * 2**30
        per_hit = self.reservoir.nbytes / len(self.reservoir)
        n_hits = room / max(per_hit, 1.0) - _MOST_NEW * self.round_hits
        self.reservoir.capacity = max(self.round_hits, int(n_hits / (1 + SLACK)))
        self._remarks.append(
            f"Hits take {per_hit / 1024:.1f} KiB each; {self.reservoir.capacity:,} are kept at a time, "
            "and a fair sample if there are more."
        )

    def _exclude(self, event_ids: NDArray[np.uint64]) -> None:
        """Leave out the hits of these events, and take back those that are no longer excluded."""
        gone, back = self.arrivals.exclude(event_ids)
        self.reservoir.leave_out(gone)
        if len(back):
            self.reservoir.add(back, self.source.read(back))
        if not len(gone) and not len(back):
            return
        self._is_changed = True
        if self._carried and len(self.reservoir) < _FEWEST:
            self._start_anew()

    def _start_anew(self) -> None:
        """Forget everything merged; the next round begins at random."""
        self._n_starts += 1
        self._carried, self._n_prepared = {}, 0
        self.memory.forget()

    def _choose(self) -> NDArray[np.int64]:
        """Rows of the hits for a round: new ones first, then those not looked at for longest."""
        order = hash_of_events(self.reservoir.event_id, _SALT)
        n_new = min(self.reservoir.n_unseen, _MOST_NEW * self.round_hits)
        rows = np.lexsort((order, self.reservoir.visited))[: max(self.round_hits, n_new)]
        return np.sort(rows)

    def _make(self, rows: NDArray[np.int64]) -> RoundEmc:
        settings = self.settings.model_copy(
            update={"models": 1, "starts": 1, "refine": False, "diameter_A": self._diameter_A}
        )
        return RoundEmc(
            self.reservoir.source(rows), settings, seed=self.seed + self._n_starts, device=self.device,
            memory=self.memory, goes_on=bool(self._carried),
        )  # fmt: skip

    def _profile_of(self, emc: RoundEmc) -> RadialProfile:
        return emc.profile if self._profile is None else self._profile

    def _begin_final(self) -> FinalEmc:
        self.reservoir.forget_frames()
        chosen = PartOfSource(self.source, self.arrivals.chosen, "hits that were chosen")
        return FinalEmc(
            chosen, self.settings, seed=self.seed, device=self.device,
            learnt=self._learnt if self._carried else None, tries_both=self.online.finish == "both",
        )  # fmt: skip

    # Results and state ------------------------------------------------------------------------------------

    def volumes(self) -> list[Volume]:
        """The intensity, in photons per pixel of mean correction at mean fluence."""
        if self._final is not None:
            return self._final.volumes()
        assert self._learnt is not None
        learnt = self._learnt
        return intensity_volumes(
            learnt.full, [learnt.profile] * len(learnt.full), learnt.voxel_inv_A, learnt.merged_inv_A,
            self._diameter_A,
        )  # fmt: skip

    def orientations(self) -> dict[str, NDArray[Any]]:
        """One row per hit that is kept."""
        if self._final is not None:
            return self._final.orientations()
        known, ids = self.reservoir.columns, self.reservoir.event_id
        return {
            "event_id": ids,
            "quaternion": known["quaternion"],
            "confidence": known["confidence"],
            "fluence": known["fluence"],
            "model": np.where(known["weight"] < 0.5, -1, known["model"]),
            "log_likelihood": known["log_likelihood"],
            "perplexity": known["perplexity"],
            "half": half_of_events(ids) if self.settings.halves else np.zeros(len(ids), np.int64),
            "sentinel": sentinels_of_events(ids, self.settings.sentinels),
        }

    def state(self) -> dict[str, Any]:
        """Everything that the next step depends on, except the hits themselves, which the source has."""
        state: dict[str, Any] = {
            **{f"online/{name}": getattr(self, f"_{name}") for name in _NUMBERS},
            **self.arrivals.state(),
            **self.reservoir.state(),
            **{f"carried/{name}": value for name, value in self._carried.items()},
        }
        if self._learnt is not None:
            state |= self._learnt.state()
        if self._final is None:
            return state | self.memory.state()
        return state | {f"final/{name}": value for name, value in self._final.state().items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a state of the same run."""
        for name in _NUMBERS:
            kind = type(getattr(self, f"_{name}"))
            setattr(self, f"_{name}", kind(state[f"online/{name}"]))
        self._carried = _below(state, "carried/")
        if "map/models" in state:
            self._learnt = LearntMap.from_state(state)
            self._profile = self._learnt.profile
        self.arrivals.restore(state)
        final = _below(state, "final/")
        self.reservoir.restore(state, with_frames=not final)
        if final:
            self._final = self._begin_final()
            self._final.restore(final)
        else:
            self.memory.restore(state, namespace_of_device(self.device))


_NUMBERS = ("n_rounds", "n_starts", "n_prepared", "failed_at", "slow_stage", "is_settled", "diameter_A")


def _below(state: Mapping[str, Any], start: str) -> dict[str, Any]:
    """The part of a state whose names begin with ``start``, which is removed from them."""
    return {name.removeprefix(start): value for name, value in state.items() if name.startswith(start)}
