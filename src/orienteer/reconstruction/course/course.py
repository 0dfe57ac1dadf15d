"""The course of a run: when a stage is over, which start goes on, and when and why the run ends."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, cast

import numpy as np

from orienteer.compute.words import counted

# Gains below these do not count: in nats per frame, and in the mean correlation of the halves.
_SMALL_GAIN, _SMALL_AGREEMENT = 0.05, 0.005
# A model has settled if less change than this is still to come, relative to its contrast.
_SMALL_REST = 0.1
# Frames spread over at most this many poses count as oriented.  The grid spreads them over half as many.
_FEW_POSES = 16.0
# A stage is over after this many iterations in a row below its best likelihood.
_WORSE = 6
# Weight of the newest ratio of two changes in the running mean of these ratios.
_RATIO_SHARE = 0.3
# Fewest iterations of a stage after annealing: in general, and while frames are spread over many poses.  The
# first steps of such frames say little about the many small ones that follow.
_FEWEST, _FEWEST_FAINT = 3, 10
# Most iterations after annealing: of a stage, and of the last stage.
_MOST, _MOST_LAST = 60, 40
# The same while the number of models grows: a model that will be split need not be perfect.
_MOST_GROWING = 15
# Correlations of the halves: below the first a shell holds only noise, below the second the run has failed.
_NO_SIGNAL, _NOTHING_FOUND = 0.05, 0.1

# How the reasons begin with which a run ends in trouble; runs keep their reasons as sentences.
_NO_AGREEMENT = "The two halves agree on nothing"
_NO_BETTER = "The model explains the sentinels no better than a round object would"
_LIMIT = "The limit of"

Turn = Literal["go on", "next stage", "next start", "best start", "judge states", "end"]


@dataclass(frozen=True)
class Progress:
    """The numbers by which an iteration is judged.

    log_likelihood : mean evidence of the merged frames, over all poses, in nats.
    change : relative change of the model since the iteration before.
    agreement : mean correlation of the halves over the scored shells; None without halves.
    agreement_at_edge : the same over the shells near the largest scored radius; None if the next stage has
        the same radius.
    resolution_A : full-period resolution at that radius.
    iterations_done : iterations since the temperature reached its end; 0: it is still falling.
    perplexity : effective number of poses that a frame is spread over.
    """

    log_likelihood: float
    change: float
    agreement: float | None
    agreement_at_edge: float | None
    resolution_A: float
    iterations_done: int
    perplexity: float


@dataclass
class Course:
    """Where a run is.  All fields are part of a checkpoint.

    iteration : iterations done; stage, start : counted from 0.
    last_log_likelihood, last_agreement, last_change : of the iteration before, in the same stage.
    log_ratio : running mean of ln(change / change of the iteration before).
    best_log_likelihood, since_best : the best of the stage after annealing, and the iterations since one came
        near it.
    found_nothing : whether the models show nothing but noise.
    after_limit : what would have come next when the limit of iterations ended the run; "" if it did not.
    has_start : whether the start that goes on is known: chosen from several, given, or known by its symmetry.
    has_asked_symmetry : whether this start was already searched for a symmetry that was not given.
    tries_symmetry : whether the present models were made symmetric on trial.
    grows : whether more models may be added; each time, the first stage is done again.
    led_stage : the stage that begins with the map of another reconstruction, which did the search; -1: none.
    is_patient : whether the first stage may go on, up to its limit, while its models make the sentinels no
        likelier than a round object does; true if the models began at random.
    """

    n_stages: int
    n_starts: int
    most_iterations: int
    iteration: int = 0
    stage: int = 0
    start: int = 0
    last_log_likelihood: float = -np.inf
    last_agreement: float = -np.inf
    last_change: float = 0.0
    log_ratio: float = 0.0
    best_log_likelihood: float = -np.inf
    since_best: int = 0
    finished: bool = False
    reason: str = ""
    found_nothing: bool = False
    after_limit: str = ""
    has_start: bool = False
    has_asked_symmetry: bool = False
    tries_symmetry: bool = False
    grows: bool = False
    led_stage: int = -1
    is_patient: bool = True

    @property
    def is_last_stage(self) -> bool:
        """Whether there is nothing finer."""
        return self.stage == self.n_stages - 1

    @property
    def has_settled(self) -> bool:
        """Whether models have settled once and show something.

        Before that, halves agree about whatever they both began with.
        """
        return self.stage > 0 and not self.found_nothing

    @property
    def is_at_limit(self) -> bool:
        """Whether the limit allows no further iteration."""
        return self.iteration >= self.most_iterations

    @property
    def patience(self) -> int:
        """Most iterations of the present stage after annealing."""
        if self.stage == 0 and self.grows and (self.has_start or self.n_starts == 1):
            return _MOST_GROWING
        return _MOST_LAST if self.is_last_stage else _MOST

    def enter(self, stage: int) -> None:
        """Begin a stage, and forget the numbers of the one before: its likelihoods were of other pixels."""
        self.stage = stage
        self.last_log_likelihood = self.last_agreement = -np.inf
        self.last_change = self.log_ratio = 0.0
        self.best_log_likelihood, self.since_best = -np.inf, 0

    def judge(self, now: Progress) -> Turn:
        """Count an iteration and decide what comes next, without regard to the limit of iterations."""
        self.iteration += 1
        return self._judge(now)

    def heed_sentinels(self, turn: Turn, iterations_done: int, *, is_no_better: bool, is_worse: bool) -> Turn:
        """Correct a turn by what the sentinels show.

        iterations_done : as in :class:`Progress`.
        is_no_better, is_worse : whether the models explain the sentinels no better than a round object would,
            or significantly worse.
        """
        if turn == "go on":
            return turn
        # Faint frames leave a random start slowly: first towards a round object, and then away from it.
        if self.stage == 0 and self.is_patient and is_no_better and iterations_done < self.patience:
            return self.take_back_the_end()
        if (turn == "end" and is_no_better) or (turn == "next stage" and is_worse):
            return self._end_with_nothing(_NO_BETTER)
        return turn

    def heed_limit(self, turn: Turn) -> Turn:
        """The turn, or the end if the limit of iterations is reached; with a higher limit the run goes on."""
        if not self.is_at_limit or turn == "end":
            return turn
        self.after_limit = turn
        return self._end(
            f"{_LIMIT} {counted(self.most_iterations, 'iteration')} was reached before the end; a higher "
            "--iterations goes on from there."
        )

    def take_back_the_end(self) -> Turn:
        """Go on after all: a symmetry or more iterations may show what the first stage has not shown yet."""
        self.finished, self.reason, self.found_nothing = False, "", False
        return "go on"

    def reopen(self) -> Turn:
        """What comes next after a resume: what the old limit prevented, if the limit was raised."""
        if not self.after_limit or self.is_at_limit:
            return "go on"
        turn, self.after_limit = cast(Turn, self.after_limit), ""
        self.finished, self.reason = False, ""
        return turn

    def _judge(self, now: Progress) -> Turn:
        gain = now.log_likelihood - self.last_log_likelihood
        agreement = 0.0 if now.agreement is None else now.agreement
        is_led_there = self._is_led_there(now)
        rest = self._change_to_come(now.change)
        is_better = (
            gain >= _SMALL_GAIN
            or agreement - self.last_agreement >= _SMALL_AGREEMENT
            or (rest >= _SMALL_REST and not self._moves_noise(now.perplexity))
        )
        self.last_log_likelihood, self.last_agreement = now.log_likelihood, agreement
        out_of_patience = now.iterations_done >= self.patience
        self.since_best += 1
        if now.iterations_done == 0 or now.log_likelihood > self.best_log_likelihood - _SMALL_GAIN:
            self.since_best = 0
        if now.iterations_done > 0:
            self.best_log_likelihood = max(self.best_log_likelihood, now.log_likelihood)
        # A model that explains the frames less and less well is fitting its own noise.
        is_worse = self.since_best >= _WORSE
        has_begun = now.iterations_done >= fewest_iterations(now.perplexity)
        settled = out_of_patience or (has_begun and (is_worse or not is_better))
        if not (settled or is_led_there):
            return "go on"
        if self.stage == 0 and self.n_starts > 1 and not self.has_start:
            return "next start" if self.start + 1 < self.n_starts else "best start"
        if self.stage == 0 and self.grows:
            return "judge states"
        if now.agreement is not None and now.agreement < _NOTHING_FOUND:
            return self._end_with_nothing(_NO_AGREEMENT)
        if now.agreement_at_edge is not None and now.agreement_at_edge < _NO_SIGNAL:
            return self._end(
                f"At {now.resolution_A:.3g} A the two halves do not agree any more: finer details are not in "
                "these frames."
            )
        if not self.is_last_stage:
            return "next stage"
        if is_led_there and not settled:
            return self._end("The map that the run began with hardly changes any more.")
        if out_of_patience and is_better:
            return self._end(f"The last stage was still improving slowly after {_MOST_LAST} iterations.")
        return self._end("An iteration at full resolution gains nothing any more.")

    def _is_led_there(self, now: Progress) -> bool:
        """Whether the map of another reconstruction hardly changes any more.

        Its likelihood still rises a little, while poses move by less than their refinement will move them.
        """
        if self.stage != self.led_stage or now.iterations_done == 0:
            return False
        if now.change < _SMALL_REST:
            return True
        if now.iterations_done < _FEWEST or not self.last_change > 0:
            return False
        ratio = now.change / self.last_change
        return ratio < 1 and now.change * ratio / (1 - ratio) < _SMALL_REST

    def iterations_to_settle(self, iterations_done: int, perplexity: float) -> int:
        """Further iterations that the stage will take, at least 1, if its changes shrink as they did.

        iterations_done, perplexity : as in :class:`Progress`.
        """
        fewest = fewest_iterations(perplexity)
        if iterations_done <= fewest or self._moves_noise(perplexity) or not self.last_change > 0:
            return max(1, fewest + 1 - iterations_done)
        most = max(1, self.patience - iterations_done)
        if not self.log_ratio < 0:
            return most
        # After k iterations the change still to come is smaller by the factor exp(k log_ratio).
        to_come = self.last_change / np.expm1(-self.log_ratio)
        return int(np.clip(np.ceil(np.log(_SMALL_REST / to_come) / self.log_ratio), 1, most))

    def _moves_noise(self, perplexity: float) -> bool:
        """Whether further changes of a model are only noise, if neither likelihood nor agreement improves.

        At full resolution, frames with known poses have given all their information after a few iterations.
        Voxels with few photons keep changing for dozens more.
        """
        return self.is_last_stage and perplexity <= _FEW_POSES

    def _change_to_come(self, change: float) -> float:
        """The sum of all later changes, if each is the one before times the same ratio r: c r / (1 - r).

        Faint frames move a model in many small steps, so a small step need not be the last.
        """
        if self.last_change > 0 and change > 0:
            newest = np.log(change / self.last_change)
            self.log_ratio += _RATIO_SHARE * (newest - self.log_ratio)
        self.last_change = change
        if change == 0:
            return 0.0
        return float(change / np.expm1(-self.log_ratio)) if self.log_ratio < 0 else np.inf

    def _end_with_nothing(self, what: str) -> Turn:
        self.found_nothing = True
        return self._end(f"{what}: the frames are too few, too dim, or not of one particle.")

    def _end(self, reason: str) -> Turn:
        self.finished, self.reason = True, reason
        return "end"

    def state(self) -> dict[str, Any]:
        """All numbers by name."""
        return {f"course/{field.name}": getattr(self, field.name) for field in fields(self)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Resume from a state, with the present limit of iterations."""
        for field in fields(self):
            # Older checkpoints lack some of the fields.
            if field.name != "most_iterations" and f"course/{field.name}" in state:
                setattr(self, field.name, type(getattr(self, field.name))(state[f"course/{field.name}"]))


def is_trouble(reason: str) -> bool:
    """Whether a run ended for a reason that puts its result in doubt.

    >>> is_trouble("The limit of 3 iterations was reached before the end.")
    True
    >>> is_trouble("An iteration at full resolution gains nothing any more.")
    False
    """
    return reason.startswith((_NO_AGREEMENT, _NO_BETTER, _LIMIT))


def fewest_iterations(perplexity: float) -> int:
    """Fewest iterations of a stage after annealing, for frames with this perplexity."""
    return _FEWEST if perplexity <= _FEW_POSES else _FEWEST_FAINT


def first_edge_shell(radius: int, voxels_per_speckle: float, order: int) -> int:
    """The first of the outer shells that decide whether the halves agree near a radius; all in voxels.

    These shells are the outer tenth.  A symmetric particle has fewer independent voxels and gets more shells:
    enough that noise correlates by less than what counts as nothing, but at most the outer half.

    >>> first_edge_shell(40, 4.0, order=1), first_edge_shell(40, 4.0, order=2), first_edge_shell(40, 4.0, 60)
    (36, 33, 20)
    """
    shells = np.arange(radius)
    # Friedel mates count as one measurement.
    independent = 4 * np.pi * shells**2 / voxels_per_speckle**3 / (2 * order)
    from_edge = np.cumsum(independent[::-1])[::-1]
    enough = int(np.flatnonzero(from_edge >= 1 / _NO_SIGNAL**2).max(initial=0))
    return int(np.clip(enough, radius // 2, int(0.9 * radius)))


def chosen_start(log_likelihood: Sequence[float]) -> str:
    """One sentence about the likeliest start, which goes on.

    >>> chosen_start([-80.0, -75.5, -79.0])
    'Start 2 of 3 goes on: its log-likelihood is -75.5 nats per frame, those of the others -80.0, -79.0.'
    """
    best, n = int(np.argmax(log_likelihood)), len(log_likelihood)
    others = ", ".join(f"{nats:.1f}" for i, nats in enumerate(log_likelihood) if i != best)
    return (
        f"Start {best + 1} of {n} goes on: its log-likelihood is {log_likelihood[best]:.1f} nats per frame, "
        f"those of the others {others}."
    )
