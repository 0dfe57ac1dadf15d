"""OnlineEmc: a reconstruction that begins with the first hits, and grows while others arrive.

It works in rounds.  A round takes in new hits, adds those that were not looked at for longest, and does one
iteration of EMC with them, joined with what earlier rounds have merged.  While all hits fit into one round,
this is an iteration of batch EMC.  When the last hit has come, all stages are repeated with all hits,
starting from the map so far.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from orienteer.online.growth import Growth
from orienteer.online.round_emc import RoundEmc
from orienteer.reconstruction.handing_over import LearntMap, begin_from
from orienteer.reconstruction.orienting.sentinels import watch_of
from orienteer.reconstruction.step import Step

# Most hits from which size and radial mean are estimated; growth of the hits after which this is repeated.
_LOOKED_AT, _GROWTH = 20_000, 2.0
# A new estimate of the size replaces the old one if it differs by more than this share.
_SAME_SIZE = 0.05
# How often every hit is looked at after annealing, on average, before a finer stage is entered.
_TURNS = 3


@dataclass(frozen=True)
class OnlineStep(Step):
    """The record of a round: that of an iteration, with counts of hits.

    n_hits, n_new, n_waiting : hits taken in so far, new in this round, and not taken in yet.
    n_round : hits that this round has looked at.
    n_excluded : hits that were excluded by the user.
    """

    n_hits: int = 0
    n_new: int = 0
    n_waiting: int = 0
    n_round: int = 0
    n_excluded: int = 0


class OnlineEmc(Growth):
    """A growing reconstruction, round by round; ``follow`` keeps it in a folder."""

    def step(self) -> Step:
        """Do one round; or, when the last hit has come, one iteration with all hits."""
        if self._final is not None or self._ends:
            return self._final_step()
        self._take_in_new()
        if not self._carried or len(self.reservoir) >= _GROWTH * self._n_prepared:
            self._prepare()
        rows = self._choose()
        n_new = int((self.reservoir.visited[rows] < 0).sum())
        emc = self._make(rows)
        emc.begin(self._carried, self._profile_of(emc), self.reservoir, rows)
        if (n_new or self._is_changed) and self._is_settled:  # other hits: the stage is not settled any more
            emc.course.enter(emc.course.stage)
            emc.annealing.iterations_done = min(emc.annealing.iterations_done, 1)
        self._is_settled = self._is_changed = False
        is_annealing = emc.annealing.iterations_done == 0
        share = max(len(rows) / len(self.reservoir), self.online.forgetting)
        self.memory.share = 1.0 if is_annealing else share
        if len(rows) < len(self.reservoir):
            emc.most_rounds = _TURNS * len(self.reservoir) / len(rows)
        step = emc.step()
        self.reservoir.note(rows, emc.known_of_frames(), self._n_rounds)
        self._n_rounds += 1
        self.arrivals.look()
        note = self._turn(emc, n_new)
        self._plan, self._learnt, self._profile = emc.plan, LearntMap.of(emc), emc.profile
        if self._carried:
            self._carried = emc.carried()
        self.reservoir.trim()
        return self._told(step, note, n_new, len(rows))

    def _prepare(self) -> None:
        """Estimate size and radial mean from the hits so far, and put the models onto the new voxels."""
        n = len(self.reservoir)
        rows = np.unique(np.linspace(0, n - 1, min(n, _LOOKED_AT)).astype(np.int64))
        before, self._diameter_A = self._diameter_A, self.settings.diameter_A
        emc = self._make(rows)
        if before and before != emc.diameter_A and abs(emc.diameter_A / before - 1) < _SAME_SIZE:
            self._diameter_A = before
            emc = self._make(rows)
        self._diameter_A = emc.diameter_A
        self._remarks += emc.remarks
        if self._carried and self._learnt is not None:
            stage = min(int(self._carried["course/stage"]), len(emc.stages) - 1)
            begin_from(emc, self._learnt, stage)
            emc.annealing.restore(self._carried)
            emc.watch = watch_of(self._carried)
            emc.course.restore({**self._carried, "course/stage": stage, "course/n_stages": len(emc.stages)})
            self.memory.forget()
        self._carried, self._profile, self._n_prepared = emc.carried(), emc.profile, n

    def _turn(self, emc: RoundEmc, n_new: int) -> str:
        """Decide about stages and starts after a round; returns a note about the decision."""
        course, stage = emc.course, emc.course.stage
        found_nothing = course.found_nothing
        course.finished, course.reason, course.found_nothing = False, "", False
        n_waiting = self.arrivals.n_waiting
        if not n_new:
            self._slow_stage = 0
        if found_nothing:
            self._failed_at = len(self.arrivals.chosen)
            self._start_anew()
            return "The halves agree on nothing yet; another start follows when there are more hits."
        if n_waiting >= self.round_hits and stage > 0:
            self._slow_stage = stage
            emc.enter(stage - 1)
            self.memory.forget()
            return "Hits come faster than this stage takes them; the map goes back to a coarser one."
        if emc.turn == "next stage" and not n_waiting and stage + 1 != self._slow_stage:
            emc.enter(stage + 1)
            self.memory.forget()
        elif emc.turn != "go on":
            self._is_settled = True
        return ""

    def _told(self, step: Step, note: str, n_new: int, n_round: int) -> OnlineStep:
        told = {field.name: getattr(step, field.name) for field in fields(step)}
        notes, self._remarks = [step.note, note, *self._remarks], []
        told |= {"iteration": self.iteration, "note": " ".join(part for part in notes if part)}
        if self._final is None:
            told |= {"finished": False, "reason": "", "seconds_left": None, "start": self._n_starts + 1}
        return OnlineStep(
            **told, n_hits=len(self.arrivals.chosen), n_new=n_new, n_waiting=max(self.arrivals.n_waiting, 0),
            n_round=n_round, n_excluded=len(self.arrivals.left_out),
        )  # fmt: skip

    def _final_step(self) -> OnlineStep:
        if self._final is None:
            self._final = self._begin_final()
        return self._told(self._final.step(), "", 0, len(self.arrivals.chosen))
