"""Everything that the folder of a run holds, read part by part; a missing or damaged part is a sentence."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from orienteer.detector.detector import Detector
from orienteer.errors import FileError, OrienteerError
from orienteer.phase.files import DENSITY_MRC, SUPPORT
from orienteer.phase.files import DESCRIPTION as PHASING
from orienteer.phase.result import read_description
from orienteer.reconstruction.settings import AUTO_SYMMETRY, EmcSettings
from orienteer.report.frames import Frames, look_at_frames
from orienteer.report.surface import surface_level
from orienteer.report.words import sentence
from orienteer.run.directory import RunDirectory
from orienteer.run.events import STEP, read_events
from orienteer.run.files import LOOP_DENSITY
from orienteer.run.files import VALIDATION as FOLDER
from orienteer.run.known_orientations import known_orientations_in_words
from orienteer.run.orientations_file import read_orientations
from orienteer.run.settings_file import read_settings, with_names_of_today
from orienteer.validate.half_maps import MAP_FILES
from orienteer.validate.result import read_validation
from orienteer.volume.opening import open_volume, open_volumes
from orienteer.volume.volume import Volume

T = TypeVar("T")

HALVES = (f"{FOLDER}/{MAP_FILES[0]}", f"{FOLDER}/{MAP_FILES[1]}")
MASK = f"{FOLDER}/{MAP_FILES[2]}"


@dataclass(frozen=True)
class Found(Generic[T]):
    """A part of a run, or the sentence that the page shows instead.

    value : the part; None if there is none.
    missing : why there is none; empty if there is one.
    is_damaged : whether it exists but cannot be read.
    """

    value: T | None
    missing: str = ""
    is_damaged: bool = False


@dataclass(frozen=True)
class Evidence:
    """The parts of a run that a report uses.

    description : the content of ``run.json``.
    settings : the sections of ``settings.toml``.
    events : the lines of the log.
    frames : facts from the data themselves, which may have moved since.
    loop_density : the density that M-TIP phased in its loop.
    phasing, validation : the contents of ``phasing.json`` and ``validation/validation.json``.
    """

    path: Path
    description: Found[dict[str, Any]]
    settings: Found[dict[str, Any]]
    events: Found[list[dict[str, Any]]]
    detector: Found[Detector]
    intensities: Found[tuple[Volume, ...]]
    orientations: Found[dict[str, NDArray[Any]]]
    frames: Found[Frames]
    density: Found[Volume]
    loop_density: Found[Volume]
    support: Found[Volume]
    phasing: Found[dict[str, Any]]
    halves: Found[tuple[Volume, Volume]]
    mask: Found[Volume]
    validation: Found[dict[str, Any]]

    @property
    def damages(self) -> list[str]:
        """Why existing parts cannot be read, each reason once."""
        found = (getattr(self, part.name) for part in fields(self))
        return list(dict.fromkeys(one.missing for one in found if isinstance(one, Found) and one.is_damaged))

    @cached_property
    def levels(self) -> tuple[float, ...]:
        """The levels of the surfaces of the density and of the half maps; empty without a density."""
        maps = () if self.density.value is None else (self.density.value, *(self.halves.value or ()))
        with ThreadPoolExecutor() as pool:
            return tuple(pool.map(surface_level, [np.asarray(one.values) for one in maps]))

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The records of the steps, in order; empty if the log cannot be read."""
        steps = [event for event in self.events.value or [] if event["event"] == STEP]
        return [step for step in steps if isinstance(step.get("iteration"), int)]

    @property
    def described(self) -> dict[str, Any]:
        """The content of ``run.json``; empty if it cannot be read."""
        return self.description.value or {}

    @property
    def method_settings(self) -> dict[str, Any]:
        """The settings of the method of the run; empty if they cannot be read."""
        section = (self.settings.value or {}).get(str(self.described.get("method", "emc")))
        return section if isinstance(section, dict) else {}

    @property
    def given_symmetry(self) -> str:
        """The symmetry that the settings impose on the intensity; C1 if they impose none."""
        given = str(self.method_settings.get("symmetry", "C1"))  # may be anything in a damaged file
        return "C1" if given == AUTO_SYMMETRY else given

    @property
    def symmetry(self) -> str:
        """The symmetry of the intensity: given, or found in the frames according to the last step."""
        told = [step["symmetry"] for step in self.steps if isinstance(step.get("symmetry"), str)]
        return told[-1] if told and self.given_symmetry == "C1" else self.given_symmetry

    @property
    def known_orientations(self) -> str:
        """One sentence if orientations were given rather than found; otherwise empty."""
        return known_orientations_in_words(self.method_settings)

    @property
    def input(self) -> dict[str, Any]:
        """The data that the run was begun with; empty if that is not known."""
        given = self.described.get("input")
        return given if isinstance(given, dict) else {}

    def has_changed_since(self, run_id: str, iteration: int | None) -> bool:
        """Whether this is another run, or another iteration, than that from which a result was made."""
        now = self.steps[-1]["iteration"] if self.steps else None
        is_other_run = run_id not in ("", self.described.get("run_id"))
        return is_other_run or (iteration is not None and now is not None and iteration != now)


def gather(path: Path) -> Evidence:
    """Read the run in a folder; only a folder without any run is an error."""
    directory = RunDirectory(path)
    if not directory.is_run:
        directory.describe()  # raises an error that says what the folder is instead
    description = find(directory.describe, "")
    described = description.value or {}
    with ThreadPoolExecutor() as pool:  # checksums and unpacking of maps take time

        def beside(read: Callable[[], T | None], otherwise: str) -> Callable[[], Found[T]]:
            return pool.submit(lambda: find(read, otherwise)).result

        frames = beside(partial(look_at_frames, described, directory.detector), "The data came from no file.")
        validation = beside(partial(read_validation, path), "Not validated: run orienteer validate.")
        settings = beside(partial(_settings, directory), f"{directory.settings}: holds no settings.")
        events = beside(partial(_events, directory), "The run has not been started.")
        detector = beside(directory.read_detector, "The data came without a detector.")
        intensities = beside(
            partial(_existing, directory.intensity, open_volumes),
            "There is no intensity yet; the first comes with the first step.",
        )
        orientations = beside(
            partial(_existing, directory.orientations, read_orientations),
            "Nothing is known about single frames yet; that comes with the first step.",
        )
        density = beside(
            partial(_existing, path / DENSITY_MRC, _real_volume),
            "There is no density yet: run orienteer phase.",
        )
        loop_density = beside(partial(_loop_density, path), "The loop has not phased anything.")
        support = beside(partial(_existing, path / SUPPORT, _real_volume), "No support was kept.")
        phasing = beside(partial(_phasing, path), "There is no density yet: run orienteer phase.")
        halves = beside(partial(_half_maps, path), "There are no half maps: orienteer validate makes them.")
        mask = beside(partial(_existing, path / MASK, _real_volume), "No mask was kept.")
        return Evidence(
            path, description, settings(), events(), detector(), intensities(), orientations(), frames(),
            density(), loop_density(), support(), phasing(), halves(), mask(), validation(),
        )  # fmt: skip


def find(read: Callable[[], T | None], otherwise: str) -> Found[T]:
    """Read a part; if it cannot be read, say why.

    otherwise : the sentence for a part that does not exist.
    """
    try:
        value = read()
    except OrienteerError as error:
        return Found(None, sentence(error.message), is_damaged=True)
    return Found(value, otherwise if value is None else "")


def _phasing(path: Path) -> dict[str, Any] | None:
    return read_description(path) if (path / PHASING).exists() else None


def _existing(path: Path, read: Callable[[Path], T]) -> T | None:
    return read(path) if path.exists() else None


def _settings(directory: RunDirectory) -> dict[str, Any] | None:
    return with_names_of_today(read_settings(directory.settings), EmcSettings) or None


def _events(directory: RunDirectory) -> list[dict[str, Any]] | None:
    events = read_events(directory.events)
    if not events and directory.events.exists():
        raise FileError(directory.events, "holds no readable line.", "Copy the folder of the run again.")
    return events or None


def _real_volume(path: Path) -> Volume:
    """A map in real space that has at least one voxel with a value."""
    volume = open_volume(path, space="real")
    values = np.asarray(volume.values)
    if not np.isfinite(values).any():
        raise FileError(path, "has no voxel with a value.", "Reconstruct again with more frames.")
    return volume


def _loop_density(path: Path) -> Volume | None:
    """The density that M-TIP phased in its loop; if there are several states, that of the first."""
    names = (path / f"{LOOP_DENSITY}.mrc", path / f"{LOOP_DENSITY}_1.mrc")
    return next((_real_volume(name) for name in names if name.exists()), None)


def _half_maps(path: Path) -> tuple[Volume, Volume] | None:
    first, second = (path / name for name in HALVES)
    if not (first.exists() or second.exists()):
        return None
    return _real_volume(first), _real_volume(second)
