"""What follows an iteration: another one, the next stage or start, the trial of a symmetry, or the end.

:class:`Course` decides from numbers; the functions here give it these numbers and carry out its decisions.
"""

from typing import TYPE_CHECKING, cast

import numpy as np

from orienteer.compute.stage_log import logged
from orienteer.likelihood.base import Likelihood
from orienteer.reconstruction.carried import MOST_STARTS
from orienteer.reconstruction.course.course import Progress, Turn, chosen_start
from orienteer.reconstruction.found_symmetry import seeks_symmetry, settle_symmetry, try_symmetry
from orienteer.reconstruction.orienting.sentinels import is_watched, watch_sentinels
from orienteer.reconstruction.orienting.temperature import Annealing
from orienteer.reconstruction.states.number_of_states import ask_sentinels
from orienteer.reconstruction.states.splitting import drop_state, likeliest_split, split_state
from orienteer.reconstruction.states.summary import occupancy

if TYPE_CHECKING:
    from orienteer.reconstruction.emc import Emc


def next_turn(emc: "Emc", now: Progress, likelihood: Likelihood, beta: float) -> tuple[Turn, str]:
    """What comes after an iteration, and a sentence if a symmetry is tried before the run ends."""
    course, words = emc.course, ""
    turn = course.judge(now)
    if is_watched(course, turn):
        with logged("sentinels"):
            emc.watch = emc.mesh.all.bcast(watch_sentinels(emc, likelihood, beta))
        if (watch := emc.watch) is not None:
            turn = course.heed_sentinels(
                turn, now.iterations_done, is_no_better=watch.is_no_better, is_worse=watch.is_worse
            )
    if turn == "end" and course.stage == 0:
        turn, words = _before_end(emc)
    return course.heed_limit(turn), words


def decide(emc: "Emc", turn: Turn) -> str:
    """Choose the best start or decide about the number of states, if that comes next; returns a sentence."""
    turn = cast(Turn, emc.course.after_limit or turn)
    if turn == "best start":
        nats = [each["log_likelihood"] for each in emc.candidates] + [emc.course.last_log_likelihood]
        return chosen_start(nats)
    if turn == "judge states":
        asked = emc.mesh.all.bcast(ask_sentinels(emc)) if emc.settings.models == "auto" else None
        return emc.growth.judge(asked, occupancy(emc), lambda: likeliest_split(emc).gain)
    return ""


def take_turn(emc: "Emc", turn: Turn) -> str:
    """Prepare what comes next; returns a sentence for the user, or an empty one."""
    words, is_left = "", False
    if emc.course.tries_symmetry and turn not in ("go on", "end"):
        is_kept, words = settle_symmetry(emc)
        turn, is_left = "next stage" if is_kept else turn, not is_kept
    # If the user set the number of starts, all are made before the best is searched for a symmetry.
    is_asked = turn == "next stage" or (turn == "next start" and not emc.settings.starts)
    if not words and is_asked and seeks_symmetry(emc):
        if words := try_symmetry(emc):
            return words
        is_left = True
    is_settled = emc.course.n_starts > 1 or emc.course.has_start or emc.settings.starts
    if is_left and not is_settled:
        emc.course.n_starts, turn = MOST_STARTS, "next start"
        words += (
            " With a nearly round particle, a start may reach a wrong solution: there will be up to "
            f"{MOST_STARTS} starts, and the next begins with the inverse of this one."
        )
    if turn == "next stage":
        emc.enter(emc.course.stage + 1)
    elif turn in ("next start", "best start"):
        emc.candidates.append({**emc.learnt(), "log_likelihood": emc.course.last_log_likelihood})
        if turn == "next start":
            emc.begin_start(emc.course.start + 1)
        else:
            words = _take_best_start(emc) or words
    elif turn == "judge states":
        _grow(emc)
    return words.strip()


def _take_best_start(emc: "Emc") -> str:
    """Go on with the likeliest start; returns a sentence if that shows a symmetry, which is then tried."""
    best = int(np.argmax([candidate["log_likelihood"] for candidate in emc.candidates]))
    emc.course.start, emc.course.has_start = best, True
    emc.take_learnt(emc.candidates[best])
    emc.candidates = []
    if seeks_symmetry(emc) and (words := try_symmetry(emc)):
        return words
    emc.enter(0 if emc.course.grows else 1, is_new=False)
    return ""


def _before_end(emc: "Emc") -> tuple[Turn, str]:
    """What follows a first stage that would end the run: a symmetry may still be tried.  And a sentence."""
    words = ""
    if emc.course.is_at_limit and (emc.course.tries_symmetry or seeks_symmetry(emc)):
        return emc.course.take_back_the_end(), ""  # with a higher limit, the run returns to this point
    if emc.course.tries_symmetry:
        is_kept, words = settle_symmetry(emc)
        if is_kept:
            return "end", words
    elif not (seeks_symmetry(emc) and (words := try_symmetry(emc))):
        return "end", ""
    return emc.course.take_back_the_end(), words


def _grow(emc: "Emc") -> None:
    """Carry out the decision about the number of models."""
    growth = emc.growth
    if growth.verdict in ("split", "begin again"):
        if growth.verdict == "begin again":
            growth.n_tries += 1
            drop_state(emc, int(occupancy(emc).argmin()))
        else:
            growth.n_tries = 0
            growth.before = {**emc.learnt(), **emc.table.state(), "evidence": growth.evidence}
        split_state(emc)
        emc.momentum.forget()
        emc.course.enter(0)
        emc.annealing = Annealing(len(emc.work.poses), after_split=True)
        return
    if growth.verdict == "take back":
        emc.take_learnt(growth.before)
        emc.table.restore(growth.before)
    growth.before, emc.course.grows = {}, False
    emc.enter(1)
