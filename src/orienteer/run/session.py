"""Session: carries a run on from its last checkpoint, and decides what is written when.

Each rank has its own session.  All ranks do the steps and write shards of checkpoints; only the leader writes
everything else and decides for all when a checkpoint or results are due.
"""

from __future__ import annotations

import shlex
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orienteer.compute.stage_log import StageLog, logged
from orienteer.errors import FileError, OrienteerError, reason_of
from orienteer.run.checkpoint import Checkpoint, load_for_all, save_checkpoint, sweep_shards
from orienteer.run.crew import Crew, OthersAreElsewhere
from orienteer.run.directory import RunDirectory
from orienteer.run.events import EventLog, NoLog
from orienteer.run.fault import Fault, end_job
from orienteer.run.lock import Holder
from orienteer.run.method import Method, Step
from orienteer.run.pace import Pace
from orienteer.run.saving_beside import SavingBeside, can_be_copied, copied, volume_of_its_own
from orienteer.run.settings_file import changeable
from orienteer.run.signals import (
    NOTICE_S,
    SAVING_SHARE,
    LeaveAtOnce,
    RunStopped,
    StepAbandoned,
    StopRequests,
)
from orienteer.settings.section import Section

if TYPE_CHECKING:
    from orienteer.volume.volume import Volume


class Session:
    """The method of a run with its log and its checkpoints; the caller holds the lock of the run.

    crew : the ranks that work on it.
    notice_s : time between a signal and the end of the process; files that would take more than a share of
        it to write are skipped then, and their steps done again after the run is resumed.
    is_whole : whether the method matches the log; false after a step was abandoned or failed.
    is_agreed : whether all ranks know the state of this one; false in the middle of a step or of saving.
    begun_with : sentences on what the run began with; every checkpoint holds them, and a resumed run warns
        with them again.
    ends_later : whether the owner will call ``finish`` to end the run, while the last files are written.
    """

    def __init__(
        self,
        directory: RunDirectory,
        run_id: str,
        method: Method,
        settings: Section,
        crew: Crew | None = None,
        notice_s: float = NOTICE_S,
    ) -> None:
        self.directory = directory
        self.method = method
        self.is_whole, self.is_agreed, self.ends_later = True, True, False
        self._run_id = run_id
        self._settings = settings
        self._dragonfly = bool(getattr(settings, "dragonfly_output", False))
        self._crew = crew or Crew.alone()
        self._notice_s = notice_s
        self._stop: StopRequests | None = None
        self._log = EventLog(directory.events) if self._crew.leads else NoLog(directory.events)
        self._stages = StageLog(directory.path, self._crew.rank, self._crew.size)
        self._saved_iteration = self._results_iteration = 0
        self._has_ended = False
        self._has_noted = False
        self._noted_failure: Exception | None = None
        self.begun_with: tuple[str, ...] = ()
        self._checkpoints, self._results = Pace(), Pace()
        self._beside, self._is_small = SavingBeside(), True

    @property
    def is_saved(self) -> bool:
        """Whether the last checkpoint holds the current state of the method."""
        return self.is_whole and self._saved_iteration == self.method.iteration

    def begin(self, is_restored: bool, device: str) -> None:
        """Go on from the last good checkpoint.

        is_restored : the method is already in the state of the last checkpoint.
        """
        if is_restored:
            self._saved_iteration = self.method.iteration
            note = ""
        else:
            checkpoint, note = load_for_all(self.directory.path, self._run_id, self._crew)
            if checkpoint is not None:
                state = checkpoint.state
                self._crew.together(lambda: self.method.restore(state))
                self._saved_iteration = checkpoint.iteration
                self.begun_with = checkpoint.begun_with
        if note:
            warnings.warn(note, stacklevel=4)
        remarks = list(dict.fromkeys([*getattr(self.method, "remarks", ()), *self.begun_with]))
        for remark in remarks:
            warnings.warn(remark, stacklevel=4)
        self._crew.by_leader(lambda: self._note_begin(device, note, remarks))

    def _note_begin(self, device: str, note: str, remarks: list[str]) -> None:
        """Tidy the directory up, and log which process goes on from which iteration."""
        self.directory.tidy(self._saved_iteration)
        sweep_shards(self.directory.path)
        n_cut = self._log.cut(self._saved_iteration)
        facts: dict[str, Any] = {"iteration": self._saved_iteration, "device": device, "process": Holder.me()}
        if not self._crew.is_alone:
            facts["ranks"] = self._crew.members
        if n_cut:
            facts["steps_done_again"] = n_cut
        if note:
            facts["note"] = note
        if remarks:
            facts["remarks"] = remarks
        plan = getattr(self.method, "plan", None)
        if plan is not None:
            facts["plan"] = plan.to_json()
        self._log.append("resumed" if self._saved_iteration else "started", **facts)

    @contextmanager
    def hearing(self) -> Iterator[None]:
        """Inside the block, several ranks note signals between steps as well: no rank may leave by itself."""
        if self._crew.is_alone:
            yield
            return
        with StopRequests(self._notice_s, self._give_up) as self._stop:
            yield
        self._stop = None

    @contextmanager
    def _requests(self) -> Iterator[StopRequests]:
        if self._stop is not None:
            yield self._stop
            return
        with StopRequests(self._notice_s) as stop:
            yield stop

    def _give_up(self) -> None:
        """End all ranks in the middle of a step; the last checkpoint stays."""
        number = (self._stop and self._stop.number) or 0
        what, hint = f"The current step was given up; {self._kept()}.", how_to_resume(self.directory.path)
        fault = Fault("signal", what, hint, self._crew.rank, self._crew.host, 128 + number)

        def note() -> None:
            EventLog(self.directory.events).append(
                "stopped", iteration=self._saved_iteration, signal=number, abandoned=True
            )

        end_job(self._crew, self.directory.path, fault, note)

    def advance(self) -> Step:
        """Do one step, log it and, when it is due, save; after a signal, raise a ``RunStopped``."""
        with self._requests() as stop:
            try:
                with self.noting_failure(), self._beside.ended_by_errors():
                    step, is_stopping = self._advance(stop)
            except (StepAbandoned, LeaveAtOnce) as left:
                self.is_whole = False
                self.note_stop(signal=stop.number, abandoned=True)
                at_once = isinstance(left, LeaveAtOnce)
                what = "Stopped at once" if at_once else "The current step was given up"
                raise self._stopped(stop, what) from None
        # Checked again now that signals are no longer noted, so that one after the last check is not lost.
        if is_stopping or (self._crew.is_alone and stop.is_requested):
            self.let_files_end()
            if not self.method.finished:
                self.note_stop(signal=stop.number)
            raise self._stopped(stop, "Stopped")
        return step

    def finish(self) -> None:
        """Save the last files and log the end; also for a run that was killed just before that line."""
        with self.noting_failure():
            self._save()
            self._crew.by_leader(self._log_end)

    def keep(self) -> None:
        """Save what is not saved yet, while the next step has to wait for something."""
        if self.method.iteration and not self.method.finished:
            with self.noting_failure():
                self._save()

    @contextmanager
    def noting_failure(self) -> Iterator[None]:
        """Log an error that leaves the block; if it ends all ranks, the rank that ends them logs it."""
        try:
            yield
        except OthersAreElsewhere:
            self.is_whole = False
            raise
        except Exception as error:
            self._fail(error)
            raise

    def let_files_end(self) -> None:
        """Wait for files that are being written; after that another process may take the run."""
        self._beside.end()

    def leave(self) -> None:
        """Save what is not saved yet, because the caller wants no more steps for now."""
        if self.method.finished:
            return
        self.is_agreed = self._crew.is_alone
        with self.noting_failure():
            self._save()
        self.is_agreed = True
        self.note_stop()

    def _advance(self, stop: StopRequests) -> tuple[Step, bool]:
        self._stages.iteration = self.method.iteration + 1
        self.is_agreed = self._crew.is_alone
        with self._stages:
            step, is_stopping = self._do_and_keep(stop)
        self.is_agreed = True
        with suppress(OrienteerError):  # a failure to write timings must not end the run
            self._stages.write()
        return step, is_stopping

    def _do_and_keep(self, stop: StopRequests) -> tuple[Step, bool]:
        """Do one step, log it and, when it is due, save; returns also whether the run was asked to stop."""
        with stop.step():
            step, number = self._step_of_all(stop)
        self._beside.check()
        is_due, results_are_due = self._crew.by_leader(lambda: self._record(step))
        if self._dragonfly:
            self._write_dragonfly(step)
        if self.method.finished and self.ends_later:
            self._save_beside(True, True)
        elif self.method.finished:
            self.finish()
        elif number:
            self._save_quickly()
        elif is_due or results_are_due:
            self._save_beside(is_due, results_are_due)
        # Alone, a signal that came while files were written counts as well; ranks learn of it a step later.
        return step, stop.is_requested if self._crew.is_alone else bool(number)

    def _step_of_all(self, stop: StopRequests) -> tuple[Step, int]:
        """Do a step; returns also the signal that any rank received before its end, 0: none."""
        try:
            step = self.method.step()
        except Exception as error:
            self._crew.agree(failed=True, error=error)
            self.is_agreed = True
            raise
        try:
            number = self._crew.agree(stop.number or 0)
        except OrienteerError:  # another rank has failed, and knows that this one stops as well
            self.is_agreed = True
            raise
        if number:
            stop.hear(number)
        return step, number

    def _record(self, step: Step) -> tuple[bool, bool]:
        """Log the step; returns whether a checkpoint and whether results are due."""
        self._log.append_step(step)
        is_free = not self._beside.is_busy
        return is_free and self._checkpoints.is_due, is_free and self._results.is_due

    def _save(self) -> None:
        """Bring checkpoint and results up to date."""
        self._beside.wait()
        if not self.is_saved:
            self._save_beside(True, False)
        if self._results_iteration != self.method.iteration:
            self._write_results()
        self._beside.wait()

    def _save_quickly(self) -> None:
        """Save as ``_save`` does, but only what can be written in the time that is left after a signal."""
        self._beside.wait()
        limit_s = self._notice_s * SAVING_SHARE
        if self._crew.from_leader(self._checkpoints.cost_s <= limit_s):
            with logged("save"):
                self._checkpoint_writing()()
            if self._crew.from_leader(self._checkpoints.cost_s + self._results.cost_s <= limit_s):
                self._write_results()

    def _save_beside(self, is_due: bool, results_are_due: bool) -> None:
        """Save what is due in a thread during the next step; several ranks and large states save at once."""
        with logged("save"):
            kinds = ((is_due, self._checkpoint_writing), (results_are_due, self._results_writing))
            writes = [writing() for is_wanted, writing in kinds if is_wanted]
            if self._crew.is_alone and self._is_small:
                self._beside.begin(writes)
                return
            for write in writes:
                write()

    def _checkpoint_writing(self) -> Callable[[], None]:
        """A function that writes the state that the method has now, whenever it is called."""
        method, began = self.method, time.monotonic()
        self._crew.by_leader(self._log.sync)
        checkpoint = Checkpoint(
            self._run_id, method.iteration, method.finished, method.reason, method.state(), self.begun_with
        )
        self._is_small = can_be_copied(checkpoint.state) and not hasattr(method, "densities")
        if self._is_small and self._crew.is_alone:
            checkpoint = replace(checkpoint, state=copied(checkpoint.state))
        gathered_s = time.monotonic() - began

        def write() -> None:
            with self._checkpoints.measured(gathered_s):
                note = save_checkpoint(self.directory.path, checkpoint, self._crew)
            self._saved_iteration = checkpoint.iteration
            if note and not self._has_noted:
                self._has_noted = True
                self._crew.by_leader(lambda: self._note_ranks(note))

        return write

    def _note_ranks(self, note: str) -> None:
        """Log and warn once that ranks do not have the same numbers."""
        self._log.append("note", iteration=self._saved_iteration, note=note)
        warnings.warn(note, stacklevel=2)

    def _write_results(self) -> None:
        with logged("save"):
            self._results_writing()()

    def _results_writing(self) -> Callable[[], None]:
        """A function that writes the results that the method has now, whenever it is called."""
        method, began, iteration = self.method, time.monotonic(), self.method.iteration
        # Ranks may have to gather these from each other, so all of them call.
        volumes, orientations = method.volumes(), method.orientations()
        # A method that phases inside its loop has densities as well.
        densities: list[Volume] = getattr(method, "densities", list)()
        if self._is_small and self._crew.is_alone:
            volumes, orientations = [volume_of_its_own(volume) for volume in volumes], copied(orientations)
        gathered_s = time.monotonic() - began

        def write() -> None:
            with self._results.measured(gathered_s):
                put = self.directory.write_results
                self._crew.by_leader(lambda: put(volumes, orientations, iteration, densities))
            self._results_iteration = iteration

        return write

    def _write_dragonfly(self, step: Step) -> None:
        from orienteer.run.dragonfly_output import write_dragonfly_output

        volumes, orientations = self.method.volumes(), self.method.orientations()
        n_rotations = getattr(step, "n_rotations", None)
        place, told = self.directory.dragonfly_output, (volumes, orientations, n_rotations)
        self._crew.by_leader(lambda: write_dragonfly_output(place(step.iteration), *told))

    def _log_end(self) -> None:
        """Log the end; this line is written last, so if it is there, everything else is."""
        facts: dict[str, Any] = {"iteration": self.method.iteration, "reason": self.method.reason}
        if getattr(self.method, "at_limit", False):
            facts |= {"at_limit": True, "settings": changeable(self._settings)}
        self._log.append("finished", **facts)
        self._has_ended = True
        self._log.sync()

    def note_stop(self, **facts: Any) -> None:
        """Log that the run has stopped; if that cannot be written, the free lock shows it as well.

        A finished run is not logged as stopped, even if a signal interrupted the writing of its last file.
        """
        if self._has_ended:
            return
        with suppress(OrienteerError):
            self._log.append("stopped", iteration=self._saved_iteration, **facts)
            self._log.sync()

    def _stopped(self, stop: StopRequests, what: str) -> RunStopped:
        if self.method.finished and self.is_whole:
            return stop.exception(f"{what}; the run has just finished.", "There is nothing left to do.")
        return stop.exception(f"{what}; {self._kept()}.", how_to_resume(self.directory.path))

    def _fail(self, error: Exception) -> None:
        """Log the failure once; if a file of the run could not be written, add to its hint how to go on."""
        self.is_whole = False
        if error is self._noted_failure:  # logged already by an inner ``noting_failure`` block
            return
        self._noted_failure = error
        with suppress(OrienteerError):
            self._log.append("failed", iteration=self._saved_iteration, reason=reason_of(error))
        if isinstance(error, FileError) and Path(error.path).is_relative_to(self.directory.path):
            kept = self._kept()
            error.hint = (
                f"{error.hint} {kept[:1].upper()}{kept[1:]}. {how_to_resume(self.directory.path)}".strip()
            )

    def _kept(self) -> str:
        if not self._saved_iteration:
            return "no iteration was kept yet"
        return f"everything up to iteration {self._saved_iteration} is kept"


def how_to_resume(path: Path) -> str:
    """The hint for a run that was stopped."""
    return f"The same command resumes the run in {shlex.quote(str(path))}."
