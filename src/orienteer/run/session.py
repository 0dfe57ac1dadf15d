"""Session: one process at work on a run, from the last checkpoint on; it decides what is written when."""

from __future__ import annotations

import shlex
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

from orienteer.compute.stage_log import StageLog, logged
from orienteer.errors import FileError, OrienteerError
from orienteer.run.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from orienteer.run.directory import RunDirectory
from orienteer.run.events import EventLog
from orienteer.run.lock import Holder
from orienteer.run.method import Method, Step
from orienteer.run.pace import Pace
from orienteer.run.settings_file import changeable
from orienteer.run.signals import LeaveAtOnce, RunStopped, StepAbandoned, StopRequests
from orienteer.settings.section import Section

# After a signal there are seconds left: what would take longer to save is done again instead.
_LAST_SAVING_S = 4.0


class Session:
    """The method of a run with its log and its checkpoints; the lock of the run is held by the caller.

    is_whole : whether the method is what the log says; false when a step was abandoned or failed.
    """

    def __init__(self, directory: RunDirectory, run_id: str, method: Method, settings: Section) -> None:
        self.directory = directory
        self.method = method
        self.is_whole = True
        self._run_id = run_id
        self._settings = settings
        self._dragonfly = bool(getattr(settings, "dragonfly_output", False))
        self._log = EventLog(directory.events)
        self._stages = StageLog(directory.path)
        self._saved_iteration = self._results_iteration = 0
        self._checkpoints, self._results = Pace(), Pace()

    @property
    def is_saved(self) -> bool:
        """Whether the method stands where the last checkpoint does."""
        return self.is_whole and self._saved_iteration == self.method.iteration

    def begin(self, is_restored: bool, device: str) -> None:
        """Go on from the last good checkpoint.

        is_restored : the method is already in the state of the last checkpoint.
        """
        if is_restored:
            self._saved_iteration = self.method.iteration
            note = ""
        else:
            checkpoint, note = load_checkpoint(self.directory.path, self._run_id)
            if checkpoint is not None:
                self.method.restore(checkpoint.state)
                self._saved_iteration = checkpoint.iteration
        if note:
            warnings.warn(note, stacklevel=4)
        self.directory.tidy(self._saved_iteration)
        n_cut = self._log.cut(self._saved_iteration)
        facts: dict[str, Any] = {"iteration": self._saved_iteration, "device": device, "process": Holder.me()}
        if n_cut:
            facts["steps_done_again"] = n_cut
        if note:
            facts["note"] = note
        remarks = list(getattr(self.method, "remarks", ()))
        if remarks:
            facts["remarks"] = remarks
        for remark in remarks:
            warnings.warn(remark, stacklevel=4)
        plan = getattr(self.method, "plan", None)
        if plan is not None:
            facts["plan"] = plan.to_json()
        self._log.append("resumed" if self._saved_iteration else "started", **facts)

    def advance(self) -> Step:
        """One step, recorded and, when it is time, saved; after a signal the run is left."""
        with StopRequests() as stop:
            try:
                return self._advance(stop)
            except StepAbandoned:
                self.is_whole = False
                self._log_stop(signal=stop.number, abandoned=True)
                raise self._stopped(stop, "The step under way was given up") from None
            except LeaveAtOnce:
                self.is_whole = False
                raise self._stopped(stop, "Stopped at once") from None
            except Exception as error:
                self._fail(error)
                raise

    def finish(self) -> None:
        """End a run that was killed between its last checkpoint and the end of its log."""
        try:
            self._write_results()
            self._log_end()
        except Exception as error:
            self._fail(error)
            raise

    def leave(self) -> None:
        """Save what is not saved yet, because nobody wants more steps for now."""
        if self.method.finished:
            return
        try:
            self._save()
        except Exception as error:
            self._fail(error)
            raise
        self._log_stop()

    def _advance(self, stop: StopRequests) -> Step:
        self._stages.iteration = self.method.iteration + 1
        with self._stages:
            step = self._do_and_keep(stop)
        self._stages.write()
        if stop.is_requested:
            if not self.method.finished:
                self._log_stop(signal=stop.number)
            raise self._stopped(stop, "Stopped")
        return step

    def _do_and_keep(self, stop: StopRequests) -> Step:
        """One step, recorded and, when it is time, saved."""
        with stop.step():
            step = self.method.step()
        self._log.append_step(step)
        if self._dragonfly:
            self._write_dragonfly(step)
        if self.method.finished:
            self._save()
            self._log_end()
        elif stop.is_requested:
            self._save_quickly()
        else:
            if self._checkpoints.is_due:
                self._save_checkpoint()
            if self._results.is_due:
                self._write_results()
        return step

    def _save(self) -> None:
        """Bring checkpoint and results up to date."""
        if not self.is_saved:
            self._save_checkpoint()
        if self._results_iteration != self.method.iteration:
            self._write_results()

    def _save_quickly(self) -> None:
        """The same, as far as there is time for it after a signal."""
        if self._checkpoints.cost_s <= _LAST_SAVING_S:
            self._save_checkpoint()
            if self._checkpoints.cost_s + self._results.cost_s <= _LAST_SAVING_S:
                self._write_results()

    def _save_checkpoint(self) -> None:
        method = self.method
        with self._checkpoints.measured(), logged("save"):
            self._log.sync()
            save_checkpoint(
                self.directory.path,
                Checkpoint(self._run_id, method.iteration, method.finished, method.reason, method.state()),
            )
        self._saved_iteration = method.iteration

    def _write_results(self) -> None:
        method = self.method
        with self._results.measured(), logged("save"):
            self.directory.write_results(method.volumes(), method.orientations(), method.iteration)
        self._results_iteration = method.iteration

    def _write_dragonfly(self, step: Step) -> None:
        from orienteer.run.dragonfly_output import write_dragonfly_output

        path = self.directory.dragonfly_output(step.iteration)
        n_rotations = getattr(step, "n_rotations", None)
        write_dragonfly_output(path, self.method.volumes(), self.method.orientations(), n_rotations)

    def _log_end(self) -> None:
        """The last line of all: when it is there, so is everything else."""
        facts: dict[str, Any] = {"iteration": self.method.iteration, "reason": self.method.reason}
        if getattr(self.method, "at_limit", False):
            facts |= {"at_limit": True, "settings": changeable(self._settings)}
        self._log.append("finished", **facts)
        self._log.sync()

    def _log_stop(self, **facts: Any) -> None:
        # What could not be said here is still known: the last line is then a step.
        with suppress(OrienteerError):
            self._log.append("stopped", iteration=self._saved_iteration, **facts)
            self._log.sync()

    def _stopped(self, stop: StopRequests, what: str) -> RunStopped:
        if self.method.finished and self.is_whole:
            return stop.exception(f"{what}; the run has just finished.", "There is nothing left to do.")
        return stop.exception(f"{what}; {self._kept()}.", how_to_resume(self.directory.path))

    def _fail(self, error: Exception) -> None:
        """Note the failure, and tell how to go on where it is one of the disk of the run."""
        self.is_whole = False
        with suppress(OrienteerError):
            reason = (
                error.message if isinstance(error, OrienteerError) else f"{type(error).__name__}: {error}"
            )
            self._log.append("failed", iteration=self._saved_iteration, reason=reason)
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
    """What to do with a run that was stopped."""
    return f"The same command resumes the run in {shlex.quote(str(path))}."
