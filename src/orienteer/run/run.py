"""Run: a reconstruction whose whole state is a directory; it can be stopped at any time and resumed."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orienteer.compute.arrays import Array, DeviceName, choose_device
from orienteer.compute.file_stamp import file_stamp
from orienteer.compute.plain_json import plain
from orienteer.compute.ranks.mesh import SERIAL_MESH, HalfSets, Mesh
from orienteer.compute.ranks.world import world
from orienteer.errors import OrienteerError
from orienteer.orientation.point_group import PointGroup
from orienteer.reconstruction.settings import EmcSettings, given_group
from orienteer.run.arguments import as_count, as_folder, as_section, as_seed, as_source
from orienteer.run.beginning import begin_or_resume, leave_earlier_loop, under_way
from orienteer.run.checkpoint import LAST, Checkpoint, save_checkpoint
from orienteer.run.choice_of_method import AUTO, choose_method, shared_settings
from orienteer.run.crew import OthersAreElsewhere, crew
from orienteer.run.crew_checks import check_asked, check_crew, check_settings, check_source
from orienteer.run.directory import RunDirectory
from orienteer.run.events import EventLog
from orienteer.run.fault import Fault, end_job, fault_of, forget_fault, record_fault, stop_all
from orienteer.run.lock import RunLock
from orienteer.run.method import Method, Step, find_method
from orienteer.run.record import RunRecord
from orienteer.run.reopening import (
    read_section,
    refuse_other_files,
    refuse_other_source,
    reopen_source,
)
from orienteer.run.session import Session, how_to_resume
from orienteer.run.settings_file import changeable
from orienteer.run.signals import NOTICE_S, stopping_at_once
from orienteer.run.watch import HANG_S, Watch
from orienteer.settings.section import Section
from orienteer.source.base import Source


@dataclass(frozen=True)
class _Kept:
    """A method kept between two loops of one process, with the file stamp of the checkpoint it matches."""

    method: Method
    stamp: tuple[int, int]
    begun_with: tuple[str, ...]


class Run(RunRecord):
    """A reconstruction with its settings, input, log, checkpoints and results.

    >>> import orienteer
    >>> from orienteer.particle.bodies import sphere
    >>> beam, detector = orienteer.Beam(wavelength_A=2), orienteer.square_detector(16, 0.005, 0.2)
    >>> frames = orienteer.SimulateSettings(frames=500, photons_per_frame=300)
    >>> source = orienteer.simulate(sphere(30), beam, detector, frames, seed=1)
    >>> settings = orienteer.EmcSettings(iterations=2, level=1, diameter_A=60)
    >>> run = Run.create("virus", source, settings, seed=1)
    >>> for step in run.iterate():
    ...     print(step.iteration)
    1
    2
    >>> run
    <Run 'virus': emc, 2 iterations, finished>

    The same lines resume a run that was stopped or killed, and end in the same result.  Everything that shows
    a run reads its directory; see ``directory.py`` for the files.

    Started by ``mpiexec``, the same lines divide the work among the ranks: every rank executes all of them
    and takes part in every step; only the first rank reads the settings and writes the directory.

    notice_s : after a signal, the run ends within this time.
    hang_s : a job of several ranks ends when no rank has made progress for this long; 0: they wait for ever.
    """

    def __init__(
        self, path: Path, described: dict[str, Any], section: Any, source: Source | None, device: DeviceName
    ) -> None:
        super().__init__(path, described)
        self.settings = section
        self.device: DeviceName = device
        self.notice_s, self.hang_s = NOTICE_S, HANG_S
        self._crew = crew()
        self._source = source
        self._is_refused = False
        self._kept: _Kept | None = None
        self._mesh = SERIAL_MESH
        # Called with the method after the run has finished in this process, while its last files are written.
        self.when_finished: Callable[[Method], None] | None = None

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        source: Source | str | os.PathLike[str] | Array,
        settings: Section | Mapping[str, Any] | None = None,
        *,
        seed: int = 0,
        device: DeviceName = "auto",
        method: str = "emc",
        restart: bool = False,
    ) -> Run:
        """Begin a new run in this directory, or resume the one begun there with the same settings and data.

        Parameters
        ----------
        source : the data, or whatever ``orienteer.open`` takes, such as their path.
        settings : the section of the method, or all sections joined, of which only that of the method is
            used; or a dictionary of either.
        method : "emc", "mtip", or "auto", which chooses by the data and gives the reason.
        seed : of every random draw.
        device : may differ when a run is resumed; results then agree only to rounding errors.
        restart : remove everything of the run that was there, and begin anew.
        """
        team = crew()
        check_crew(team)
        directory = RunDirectory(team.side_by_side(lambda: as_folder(path)))
        check_asked(team, folder=directory.path, method=method, seed=seed, restart=restart)
        opened = team.side_by_side(lambda: as_source(source))
        because = ""
        if method == AUTO:
            given = settings
            method, because = team.by_leader(lambda: choose_method(opened, shared_settings(given)))
            if isinstance(settings, EmcSettings):  # use what was given, whichever method was chosen
                settings = settings.model_dump(exclude_unset=True)
        kind = find_method(method)
        section = team.by_leader(lambda: as_section(kind, settings))
        check_settings(team, lambda: as_section(kind, settings))
        check_source(team, opened, device)
        described = team.by_leader(
            lambda: begin_or_resume(directory, kind, section, opened, as_seed(seed), device, restart, because)
        )
        return cls(directory.path, described, section, opened, device)

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], source: Source | str | os.PathLike[str] | Array | None = None
    ) -> Run:
        """Open the run in a directory, to look at it or to resume it.

        source : its data; by default the first step opens them from their old path.
        """
        team = crew()
        check_crew(team)
        directory = RunDirectory(team.side_by_side(lambda: as_folder(path)))
        check_asked(team, folder=directory.path, data=source is not None)
        described = team.by_leader(directory.describe)
        kind = find_method(described["method"])
        section = team.by_leader(lambda: read_section(kind, directory, described))
        run = cls(directory.path, described, section, None, described["device"])
        if source is not None:
            opened = team.side_by_side(lambda: as_source(source))
            team.by_leader(lambda: refuse_other_source(directory, described, opened))
            run._source = opened
        return run

    @property
    def source(self) -> Source:
        """The data of the run."""
        if self._source is None:
            self._source = reopen_source(self._directory, self.described)
        return self._source

    @property
    def group(self) -> PointGroup:
        """The symmetry of its intensities: given in the settings, or found in the frames."""
        if self.given_group.order > 1:
            return self.given_group
        found = [step["symmetry"] for step in self.steps if "symmetry" in step]  # older logs have no such key
        return PointGroup(found[-1]) if found else PointGroup()

    @property
    def density_group(self) -> PointGroup:
        """The symmetry that its densities certainly have: given, or implied by that of the intensity.

        A rotation that leaves the intensity unchanged maps the density onto itself or onto its inverse.  The
        rotations that map it onto itself are the whole group or half of it.  I and T have no subgroup of half
        their order; that of O is T.
        """
        if self.given_group.order > 1:
            return self.given_group
        return PointGroup("T") if self.group.name == "O" else self.group

    @property
    def given_group(self) -> PointGroup:
        """The symmetry given in the settings; C1 if the method has no such setting."""
        return given_group(str(getattr(self.settings, "symmetry", "C1")))

    def iterate(self, n_steps: int | None = None) -> Generator[Step]:
        """Do the remaining steps, at most ``n_steps`` of them, and yield the record of each.

        It is safe to leave the loop, to stop the program or to kill it: steps that were not saved are done
        again.  Ctrl-C, SIGTERM and SIGHUP end the loop within seconds with a :class:`RunStopped` that says
        how to resume.
        """
        n_most = as_count(n_steps)
        leave_earlier_loop(self.path)
        steps = self._iterate(n_most)
        under_way[os.path.realpath(self.path)] = steps
        return steps

    def begin_with(self, change: Callable[[Method], None]) -> None:
        """Apply ``change`` to the method of a run without any step, and save that as its first checkpoint.

        Does nothing if the run has a step or a checkpoint already.
        """
        if self._crew.by_leader(lambda: self.iteration > 0 or (self.path / LAST).exists()):
            return
        with self._lock():
            method = self._make()
            said = list(getattr(method, "remarks", ()))
            self._crew.together(lambda: change(method))
            begun_with = tuple(one for one in getattr(method, "remarks", ()) if one not in said)
            start = Checkpoint(self.described["run_id"], 0, False, "", method.state(), begun_with)
            save_checkpoint(self.path, start, self._crew)
            self._kept = _Kept(method, file_stamp(self.path / LAST) or (0, 0), begun_with)

    def _iterate(self, n_steps: int | None) -> Generator[Step]:
        check_asked(self._crew, n_steps=n_steps, notice_s=self.notice_s, hang_s=self.hang_s)
        if self._crew.by_leader(lambda: self.finished and not self._may_reopen):
            return
        try:
            hint = how_to_resume(self.path)
            with self._lock(), Watch(self._crew, self.hang_s, hint, self._end_job) as watch:
                yield from self._steps(n_steps, watch)
        except OthersAreElsewhere as elsewhere:
            self._end_job(fault_of(self._crew, elsewhere.__cause__ or elsewhere, how_to_resume(self.path)))
        except Exception as error:
            fault = fault_of(self._crew, error, how_to_resume(self.path))
            if self._crew.leads and fault.kind in ("defect", "memory"):  # another start may succeed
                record_fault(self.path, fault)
            raise
        finally:
            if self._is_refused and self._crew.leads:
                with suppress(OSError):  # the folder holds other files
                    self.path.rmdir()

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Hold the lock of the run inside the block; the leader holds it for all ranks."""
        lock = RunLock(self.path)

        def take() -> None:
            lock.__enter__()
            forget_fault(self.path)

        self._crew.by_leader(take)
        try:
            yield
        finally:
            if self._crew.leads:
                lock.__exit__()

    def _steps(self, n_steps: int | None, watch: Watch) -> Generator[Step]:
        n_done = self._crew.by_leader(lambda: self.iteration)
        kept = f"everything up to iteration {n_done} is kept" if n_done else "its folder is begun"
        with stopping_at_once(
            f"Stopped while the run was set up; {kept}.",
            how_to_resume(self.path),
            stop_all(self._crew, self.path),
        ):
            device = self._crew.side_by_side(lambda: choose_device(self.device))
            session, is_restored = self._session()
            session.begin(is_restored, device)
        if session.method.finished:
            session.finish()
            self._keep(session)
            return
        try:
            with session.hearing():
                n_done = 0
                while not session.method.finished and (n_steps is None or n_done < n_steps):
                    step = session.advance()
                    watch.beat()
                    n_done += 1
                    yield step
        except GeneratorExit:  # the caller has left the loop
            self._leave(session)
            raise
        else:
            self._leave(session)
        finally:
            self._keep(session)

    def _end_job(self, fault: Fault) -> None:
        """End all ranks in the middle of their work; the last checkpoint stays."""

        def note() -> None:
            EventLog(self._directory.events).append("failed", reason=fault.message, rank=fault.rank)

        is_begun = self._directory.events.exists()
        end_job(self._crew, self.path, fault, note if is_begun else lambda: None)

    def _leave(self, session: Session) -> None:
        """Save what is not saved yet; a finished run calls ``when_finished`` during the last write."""
        session.leave()
        if session.method.finished and self.when_finished is not None:
            try:
                self.when_finished(session.method)
            finally:  # the run itself has finished, even if the callback fails
                session.finish()

    @property
    def _may_reopen(self) -> bool:
        """Whether a limit ended the run, and its changeable settings, which include the limit, differ now."""
        end = self._end or {}
        return bool(end.get("at_limit")) and end.get("settings") != plain(changeable(self.settings))

    def _session(self) -> tuple[Session, bool]:
        """The session with its method, and whether the method already has the state of the checkpoint."""
        kept, self._kept = self._kept, None
        is_restored = self._crew.by_leader(
            lambda: kept is not None and kept.stamp == file_stamp(self.path / LAST)
        )
        method = kept.method if kept is not None and is_restored else self._make()
        session = Session(
            self._directory, self.described["run_id"], method, self.settings, self._crew, self.notice_s
        )
        session.ends_later = self.when_finished is not None
        if kept is not None and is_restored:
            session.begun_with = kept.begun_with
        return session, is_restored

    def _make(self) -> Method:
        """The method before its first step; if it refuses the data, no run is left in the folder."""
        make = find_method(self.method).make
        source = self._crew.side_by_side(lambda: self.source)
        self._crew.by_leader(lambda: refuse_other_files(self._directory, self.described, self.settings))
        try:
            ranks = self._ranks()
            return self._crew.together(lambda: make(source, self.settings, self.seed, self.device, *ranks))
        except OrienteerError:
            if self._crew.leads and not self._directory.events.exists():
                self._directory.clear()
                self._is_refused = True
            raise

    def _ranks(self) -> tuple[Mesh, ...]:
        """The mesh that the settings ask for; nothing for a process that is alone."""
        if self._crew.is_alone or not isinstance(self.settings, EmcSettings):
            return ()
        self._mesh.close()
        settings = self.settings
        half_sets: HalfSets = settings.half_sets if settings.halves else "together"
        dynamic = settings.balance == "dynamic"
        self._mesh = Mesh.of(world(), settings.mesh, half_sets=half_sets, dynamic=dynamic)
        return (self._mesh,)

    def _keep(self, session: Session) -> None:
        """Keep the method for the next steps in this process.

        The stamp of the checkpoint shows later whether another process has advanced the run in between.  The
        method gives back what it holds of the machine; ranks can only do that together.
        """
        session.let_files_end()
        stamp = file_stamp(self.path / LAST) or (0, 0)
        if session.is_agreed:
            getattr(session.method, "close", lambda: None)()
        if session.is_saved and not session.method.finished:
            self._kept = _Kept(session.method, stamp, session.begun_with)
        elif session.is_agreed:
            self._mesh.close()
