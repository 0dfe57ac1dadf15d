"""Run: a reconstruction in a directory, which is all of its state; stop it at any instant and resume it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

import orienteer
from orienteer.compute.arrays import Array, DeviceName, choose_device
from orienteer.compute.file_stamp import file_stamp
from orienteer.compute.plain_json import plain
from orienteer.compute.ranks.mesh import SERIAL_MESH, HalfSets, Mesh
from orienteer.compute.ranks.world import world
from orienteer.compute.words import counted
from orienteer.errors import FileError, OrienteerError
from orienteer.reconstruction.settings import EmcSettings
from orienteer.run.arguments import as_count, as_folder, as_section, as_seed, as_source
from orienteer.run.beginning import begin_or_resume, leave_earlier_loop, under_way
from orienteer.run.checkpoint import LAST, Checkpoint, save_checkpoint
from orienteer.run.choice_of_method import AUTO, choose_method, shared_settings
from orienteer.run.crew import OthersAreElsewhere, crew
from orienteer.run.crew_checks import check_crew, check_source
from orienteer.run.directory import RunDirectory
from orienteer.run.events import STEP, EventLog, read_events
from orienteer.run.fault import Fault, end_job, fault_of, forget_fault, record_fault, stop_all
from orienteer.run.input import (
    describe_input,
    describe_wavelength,
    file_differences,
    hash_named_files,
    input_differences,
)
from orienteer.run.lock import Holder, RunLock, lock_holder
from orienteer.run.method import Method, MethodKind, Step, find_method
from orienteer.run.session import Session, how_to_resume
from orienteer.run.settings_file import (
    changeable,
)
from orienteer.run.signals import NOTICE_S, stopping_at_once
from orienteer.run.watch import HANG_S, Watch
from orienteer.settings.section import Section
from orienteer.source.base import Source

if TYPE_CHECKING:
    from orienteer.volume.volume import Volume


class Run:
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
        self.path = path
        self.described = described
        self.settings = section
        self.device: DeviceName = device
        self.notice_s, self.hang_s = NOTICE_S, HANG_S
        self._directory = RunDirectory(path)
        self._crew = crew()
        self._source = source
        self._is_refused = False
        self._kept: tuple[Method, tuple[int, int]] | None = None
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
        directory = RunDirectory(as_folder(path))
        opened = team.side_by_side(lambda: as_source(source))
        because = ""
        if method == AUTO:
            given = settings
            method, because = team.by_leader(lambda: choose_method(opened, shared_settings(given)))
            if isinstance(settings, EmcSettings):  # what was said of either method holds for the chosen one
                settings = settings.model_dump(exclude_unset=True)
        kind = find_method(method)
        section = team.by_leader(lambda: as_section(kind, settings))
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
        team, directory = crew(), RunDirectory(as_folder(path))
        check_crew(team)
        described = team.by_leader(directory.describe)
        kind = find_method(described["method"])
        section = team.by_leader(lambda: _read_section(kind, directory, described))
        run = cls(directory.path, described, section, None, described["device"])
        if source is not None:
            opened = team.side_by_side(lambda: as_source(source))
            team.by_leader(lambda: run._check(opened))
            run._source = opened
        return run

    def __repr__(self) -> str:
        state = "finished" if self.finished else "running" if self.holder else "not finished"
        return f"<Run '{self.path}': {self.method}, {counted(self.iteration, 'iteration')}, {state}>"

    def show(self, title: str = "") -> Any:
        """The picture of intensity, curves per iteration, directions and fluences, as far as it is."""
        return orienteer.show(self, title)  # pictures lie downstream

    @property
    def method(self) -> str:
        """The name of the method."""
        return str(self.described["method"])

    @property
    def seed(self) -> int:
        """The seed of every random draw."""
        return int(self.described["seed"])

    @property
    def events(self) -> list[dict[str, Any]]:
        """The whole log, in order; ``event`` says what each line is."""
        return read_events(self._directory.events)

    @property
    def steps(self) -> list[dict[str, Any]]:
        """What each step said, in order."""
        return [event for event in self.events if event["event"] == STEP]

    @property
    def iteration(self) -> int:
        """Steps done."""
        return max((step["iteration"] for step in self.steps), default=0)

    @property
    def finished(self) -> bool:
        """Whether the run has come to its end and all results are there."""
        return self._end is not None

    @property
    def reason(self) -> str:
        """Why the run has finished, in one sentence; empty when it has not."""
        return "" if self._end is None else str(self._end["reason"])

    @property
    def remarks(self) -> list[str]:
        """What the method had to say about the data before its first step."""
        begun = [event for event in self.events if event["event"] in ("started", "resumed")]
        return [str(remark) for remark in begun[-1].get("remarks", ())] if begun else []

    @property
    def holder(self) -> Holder | None:
        """The process that works on the run now."""
        return lock_holder(self.path)

    @property
    def source(self) -> Source:
        """The data of the run."""
        if self._source is None:
            self._source = self._reopen()
        return self._source

    def volumes(self) -> tuple[Volume, ...]:
        """The intensity of each model, as last saved."""
        self._need_results()
        from orienteer.volume.opening import open_volumes

        return open_volumes(self._directory.intensity)

    def orientations(self) -> dict[str, NDArray[Any]]:
        """Columns (N, ...) with what was found out about each frame, as last saved."""
        self._need_results()
        from orienteer.run.orientations_file import read_orientations

        return read_orientations(self._directory.orientations)

    @property
    def has_results(self) -> bool:
        """Whether an intensity and orientations were saved."""
        return self._directory.orientations.exists()  # written last, after the intensity

    def _need_results(self) -> None:
        if not self.has_results:
            raise OrienteerError(
                f"{self.path}: there are no results yet; the first come with the first step.",
                "Go on with the command that began it, or in Python do a step: next(run.iterate()).",
            )

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
            self._crew.together(lambda: change(method))
            start = Checkpoint(self.described["run_id"], 0, False, "", method.state())
            save_checkpoint(self.path, start, self._crew)
            self._kept = method, file_stamp(self.path / LAST) or (0, 0)

    def _iterate(self, n_steps: int | None) -> Generator[Step]:
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
            session.leave()
            raise
        else:
            session.leave()
            self._show_end(session.method)
        finally:
            self._keep(session)

    def _end_job(self, fault: Fault) -> None:
        """End all ranks in the middle of their work; what the last checkpoint holds is kept."""

        def note() -> None:
            EventLog(self._directory.events).append("failed", reason=fault.message, rank=fault.rank)

        is_begun = self._directory.events.exists()
        end_job(self._crew, self.path, fault, 1, note if is_begun else lambda: None)

    def _show_end(self, method: Method) -> None:
        if method.finished and self.when_finished is not None:
            self.when_finished(method)

    @property
    def _end(self) -> dict[str, Any] | None:
        """The line with which the run has ended; None while it has not, or since it goes on."""
        turns = [event for event in self.events if event["event"] in ("started", "resumed", "finished")]
        return turns[-1] if turns and turns[-1]["event"] == "finished" else None

    @property
    def _may_reopen(self) -> bool:
        """Whether a limit has ended the run that may be another one now."""
        end = self._end or {}
        return bool(end.get("at_limit")) and end.get("settings") != plain(changeable(self.settings))

    def _session(self) -> tuple[Session, bool]:
        """The method with its log, and whether it stands at the last checkpoint already."""
        kept, self._kept = self._kept, None
        is_restored = self._crew.by_leader(
            lambda: kept is not None and kept[1] == file_stamp(self.path / LAST)
        )
        method = kept[0] if kept is not None and is_restored else self._make()
        session = Session(
            self._directory, self.described["run_id"], method, self.settings, self._crew, self.notice_s
        )
        return session, is_restored

    def _make(self) -> Method:
        """The method before its first step; data that it refuses leave no run behind."""
        make = find_method(self.method).make
        source = self._crew.side_by_side(lambda: self.source)
        self._crew.by_leader(self._check_files)
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

    def _check_files(self) -> None:
        differences = file_differences(self.described.get("files", {}), hash_named_files(self.settings))
        if differences:
            raise FileError(
                self.path,
                f"the run there was begun with something else. Different now: {'; '.join(differences)}.",
                "Put it back as it was, or begin another run.",
            )

    def _keep(self, session: Session) -> None:
        """Keep the method for the next steps in this process; another process may go on before, however.

        What it holds of the machine is given back, which ranks can only do together.
        """
        stamp = file_stamp(self.path / LAST) or (0, 0)
        if session.is_agreed:
            getattr(session.method, "close", lambda: None)()
        if session.is_saved and not session.method.finished:
            self._kept = session.method, stamp
        elif session.is_agreed:
            self._mesh.close()

    def _check(self, source: Source) -> None:
        """Refuse a source that is not the one that the run was begun with."""
        differences = input_differences(self.described["input"], describe_input(source))
        if differences:
            raise FileError(
                self.path,
                f"the run there was begun with other data. Different now: {'; '.join(differences)}.",
                "Give the data that it was begun with (source=).",
            )

    def _reopen(self) -> Source:
        from orienteer.source.left_out import without_events
        from orienteer.source.opening import open as open_source

        stored = self.described["input"]
        if stored["path"] is None:
            raise OrienteerError(
                f"{self.path}: the data of this run came from no file.",
                "Give them: Run.open(path, source=...).",
            )
        wavelength_A = stored["wavelength_A"]
        source = open_source(stored["path"])
        if isinstance(wavelength_A, float) and describe_wavelength(source) != wavelength_A:
            with warnings.catch_warnings():  # what the data say was told when the run was begun
                warnings.simplefilter("ignore")
                source = open_source(source, wavelength_A=wavelength_A)
        detector = self._directory.read_detector()
        source = source if detector is None else source.with_detector(detector)
        source = without_events(source, np.array(stored.get("left_out", []), dtype=np.uint64))
        self._check(source)
        return source


def _read_section(kind: MethodKind, directory: RunDirectory, described: dict[str, Any]) -> Section:
    """The settings of the method, as the run was begun with them."""
    stored = directory.read_settings(described, kind.settings).get(kind.name, {})
    try:
        return kind.settings.model_validate(stored)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        where = ".".join([kind.name, *(str(part) for part in problem["loc"])])
        raise FileError(
            directory.settings,
            f"has a setting that this Orienteer does not take: {where}: {problem['msg']}.",
            "Go on with the Orienteer that has begun it, or begin anew with --restart.",
        ) from None
