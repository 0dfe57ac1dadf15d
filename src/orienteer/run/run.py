"""Run: a reconstruction in a directory, which is all of its state; stop it at any instant and resume it."""

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
    """A method between two loops of one process, and the stamp of the checkpoint at which it stands."""

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

    The same lines resume a run that was stopped, killed or cut off, and end in the same result.  Everything
    that shows a run reads its directory; see ``directory.py`` for the files.

    Started by ``mpiexec``, the same lines share out the work: every rank goes through them, and through the
    same steps; one of them reads settings and writes the directory.

    notice_s : after a signal, the run is left within this time.
    hang_s : several ranks end when none of them has done anything for this long; 0: they wait for ever.
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
        # Called with the method once the run has come to its end in this process, before it is let go.
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
        """A new run in this directory, or the one that was begun there with the same settings and data.

        Parameters
        ----------
        source : the data, or whatever ``orienteer.open`` takes, such as their path.
        settings : the section of the method, or all sections, of which only that of the method counts; a
            dictionary does as well.
        method : "emc", "mtip", or "auto", which chooses by the data and says why.
        seed : of every random draw.
        device : may be another one when a run is resumed; results then agree to rounding errors only.
        restart : begin anew; everything of the run that was there is removed.
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
            if isinstance(settings, EmcSettings):  # what was said of either method holds for the chosen one
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
        """The run in a directory, to look at it or to resume it.

        source : its data; by default they are opened from where they were, when the first step needs them.
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
        """The symmetry of its intensities: the one that was given, or that was found in the frames."""
        if self.given_group.order > 1:
            return self.given_group
        found = [step["symmetry"] for step in self.steps if "symmetry" in step]  # older runs tell none
        return PointGroup(found[-1]) if found else PointGroup()

    @property
    def density_group(self) -> PointGroup:
        """The symmetry that its densities have for certain: given, or behind that of the intensity.

        A rotation that leaves an intensity as it is maps the density onto itself or onto its inverse.  Those
        that map it onto itself are all of them or half: I and T have no such half, and that of O is T.
        """
        if self.given_group.order > 1:
            return self.given_group
        return PointGroup("T") if self.group.name == "O" else self.group

    @property
    def given_group(self) -> PointGroup:
        """The symmetry that it was told; a method may know none."""
        return given_group(str(getattr(self.settings, "symmetry", "C1")))

    def iterate(self, n_steps: int | None = None) -> Generator[Step]:
        """Do the steps that are left, at most ``n_steps`` of them, and pass on what each says.

        It is safe to leave the loop, to stop the program or to kill it: what is lost is done again.  Ctrl-C,
        SIGTERM and SIGHUP leave within seconds with a :class:`RunStopped` that says how to resume.
        """
        n_most = as_count(n_steps)
        leave_earlier_loop(self.path)
        steps = self._iterate(n_most)
        under_way[os.path.realpath(self.path)] = steps
        return steps

    def begin_with(self, change: Callable[[Method], None]) -> None:
        """Let a run that has not begun yet begin with a method that is changed so, and keep that."""
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
            if self._crew.leads and fault.kind in ("defect", "memory"):  # which another start may get over
                record_fault(self.path, fault)
            raise
        finally:
            if self._is_refused and self._crew.leads:
                with suppress(OSError):  # it holds other things
                    self.path.rmdir()

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """The lock of the run, which the leader holds for all ranks."""
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
        except GeneratorExit:  # whoever iterates has left the loop
            self._leave(session)
            raise
        else:
            self._leave(session)
        finally:
            self._keep(session)

    def _end_job(self, fault: Fault) -> None:
        """End all ranks in the middle of their work; what the last checkpoint holds is kept."""

        def note() -> None:
            EventLog(self._directory.events).append("failed", reason=fault.message, rank=fault.rank)

        is_begun = self._directory.events.exists()
        end_job(self._crew, self.path, fault, note if is_begun else lambda: None)

    def _leave(self, session: Session) -> None:
        """Save what is not saved; a run that is over is shown while its last files are written."""
        session.leave()
        if session.method.finished and self.when_finished is not None:
            try:
                self.when_finished(session.method)
            finally:  # the run itself is over, whatever becomes of who is told of it
                session.finish()

    @property
    def _may_reopen(self) -> bool:
        """Whether a limit has ended the run that may be another one now."""
        end = self._end or {}
        return bool(end.get("at_limit")) and end.get("settings") != plain(changeable(self.settings))

    def _session(self) -> tuple[Session, bool]:
        """The method with its log, and whether it stands at the last checkpoint already."""
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
        """The method before its first step; data that it refuses leave no run behind."""
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
        """The mesh that the settings ask for, where there are several ranks."""
        if self._crew.is_alone or not isinstance(self.settings, EmcSettings):
            return ()
        self._mesh.close()
        settings = self.settings
        half_sets: HalfSets = settings.half_sets if settings.halves else "together"
        dynamic = settings.balance == "dynamic"
        self._mesh = Mesh.of(world(), settings.mesh, half_sets=half_sets, dynamic=dynamic)
        return (self._mesh,)

    def _keep(self, session: Session) -> None:
        """Keep the method for the next steps in this process; another process may go on before, however.

        What it holds of the machine is given back, which ranks can only do together.
        """
        session.let_files_end()
        stamp = file_stamp(self.path / LAST) or (0, 0)
        if session.is_agreed:
            getattr(session.method, "close", lambda: None)()
        if session.is_saved and not session.method.finished:
            self._kept = _Kept(session.method, stamp, session.begun_with)
        elif session.is_agreed:
            self._mesh.close()
