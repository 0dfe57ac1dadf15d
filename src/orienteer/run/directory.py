"""RunDirectory: the files of a run and what is in them.

| file | what |
|---|---|
| ``run.json`` | seed, method, versions, machine, input; written last, it makes a folder a run |
| ``settings.toml`` | every setting as it was used |
| ``detector.h5`` | the detector as it was used, mask included |
| ``events.jsonl`` | one line per step, start, stop and end |
| ``events_rank_NNN.jsonl`` | how each rank spent its time, one line per stage |
| ``checkpoint.h5``, ``checkpoint_previous.h5`` | what is needed to go on |
| ``checkpoint_shards/`` | parts of a large checkpoint that several ranks have written |
| ``fault.json`` | why a job of several ranks ended early |
| ``intensity.h5``, ``intensity.mrc`` | the models; if there are several, ``intensity_1.mrc``, ... |
| ``density_loop.mrc`` | the density that M-TIP phases in its loop; if several, ``density_loop_1.mrc``, ... |
| ``orientations.h5`` | orientation, fluence, ... of each frame |
| ``density.*``, ``support.mrc``, ``phasing.json`` | the results of phasing |
| ``phased_model_2/``, ... | the same for the other models |
| ``report.html``, ``open_in_chimerax.cxc`` | one page about everything, and its maps in ChimeraX |
| ``dragonfly/output_NNN.h5`` | the output of each iteration in Dragonfly's format, if it was asked for |
| ``validation/`` | the two halves, each a run, and the result of their comparison |
| ``slurm/`` | scripts, numbers and logs of the batch jobs that were submitted for it |
| ``lock``, ``phasing.lock``, ``validation.lock`` | exist while a process works on it, phases or validates |
"""

from __future__ import annotations

import importlib.metadata
import platform
import re
import shlex
import shutil
import socket
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orienteer
from orienteer.cluster.job import SLURM_FOLDER
from orienteer.compute.arrays import Array
from orienteer.compute.atomic import unwritable
from orienteer.compute.machine import memory_GiB, processor_name, usable_cores
from orienteer.compute.nearest import meant_instead
from orienteer.compute.plain_json import read_described, write_json
from orienteer.errors import FileError
from orienteer.phase.files import DENSITY_H5, DENSITY_MRC, SUPPORT
from orienteer.phase.files import DESCRIPTION as PHASED
from orienteer.run import files
from orienteer.run.checkpoint import LAST, NEW, PREVIOUS
from orienteer.run.fault import NAME as FAULT
from orienteer.run.lock import NAME as LOCK
from orienteer.run.lock import PHASING, VALIDATION
from orienteer.run.settings_file import (
    hash_settings,
    is_as_begun,
    lasting,
    read_settings,
    settings_tree,
    with_names_of_today,
    write_settings,
)
from orienteer.run.shards import FOLDER as SHARDS

if TYPE_CHECKING:
    from orienteer.detector.detector import Detector
    from orienteer.settings.section import Section
    from orienteer.volume.volume import Volume

FORMAT, VERSION = "orienteer-run", 1
_LIBRARIES = ("numpy", "scipy", "numba", "h5py", "finufft", "cupy-cuda13x", "cupy-cuda12x")
_NEEDED = {"run_id", "method", "seed", "device", "input", "settings_hash"}
_LOCKS = (LOCK, PHASING, VALIDATION)
_DRAGONFLY = "dragonfly"
_OWN = {
    files.DESCRIPTION, files.SETTINGS, files.DETECTOR, files.EVENTS, files.INTENSITY_H5, files.INTENSITY_MRC,
    files.ORIENTATIONS, files.VALIDATION, files.REPORT, files.CHIMERAX_SCRIPT, files.PICTURE, _DRAGONFLY,
    SLURM_FOLDER, LAST, PREVIOUS, NEW, SHARDS, FAULT, *_LOCKS, DENSITY_MRC, DENSITY_H5, SUPPORT, PHASED,
}  # fmt: skip
_OWN_MODEL = re.compile(rf"(intensity_\d+|{files.LOOP_DENSITY}(_\d+)?)\.mrc")
_OWN_RANK = re.compile(r"events_rank_\d{3,}\.jsonl")
_OWN_SHARD = re.compile(r"\d{6,}_[0-9a-f]{8}_\d{3,}\.h5")
_OWN_OUTPUT = re.compile(r"output_(\d{3,})\.h5")
_OWN_PHASING = re.compile(r"phased_model_\d+")
_OWN_PATTERNS = (_OWN_MODEL, _OWN_RANK, _OWN_SHARD, _OWN_OUTPUT, _OWN_PHASING)
_FOLDERS = (_DRAGONFLY, SHARDS)
_PART = re.compile(r"\.(.+)\.\d+\.part")


class RunDirectory:
    """The paths of a run, and the operations on its folder as a whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.events = path / files.EVENTS
        self.settings = path / files.SETTINGS
        self.detector = path / files.DETECTOR
        self.orientations = path / files.ORIENTATIONS
        self.intensity = path / files.INTENSITY_H5
        self._description = path / files.DESCRIPTION

    @property
    def is_run(self) -> bool:
        """Whether a run was begun here."""
        return self._description.is_file()

    def make(self, restart: bool = False) -> None:
        """Make the folder; refuse one that holds other files.

        restart : accept a folder with checkpoints of a run whose description is lost.
        """
        if self.path.exists() and not self.path.is_dir():
            raise FileError(self.path, "is a file, not a folder for a run.", "Give another path.")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            foreign = sorted(entry.name for entry in self.path.iterdir() if not _is_own(entry.name))
        except OSError as error:
            raise unwritable(self.path, error) from error
        if self.is_run:
            return
        if (self.path / LAST).exists() and not restart:
            raise FileError(
                self._description,
                "is missing, but there is a checkpoint of a run beside it.",
                "Put it back to resume the run; --restart (restart=True) begins anew and keeps nothing.",
            )
        if foreign:
            raise FileError(
                self.path,
                f"holds other things ('{foreign[0]}') and no run.",
                "Give a new or an empty folder.",
            )

    def clear(self) -> None:
        """Remove all files of the run that was here, and no others; the lock stays."""
        try:
            self._description.unlink(missing_ok=True)  # first, so that an interrupted clear leaves no run
            for entry in [*self.path.iterdir(), *self._outputs()]:
                if entry.name not in _LOCKS and entry.is_file() and _is_own(entry.name):
                    entry.unlink()
            if (self.path / files.VALIDATION).is_dir():  # it tests the result that was just removed
                shutil.rmtree(self.path / files.VALIDATION)
            for folder in self._folders():
                with suppress(OSError):  # the folder holds other files
                    folder.rmdir()
        except OSError as error:
            raise unwritable(self.path, error) from error

    def tidy(self, iteration: int) -> None:
        """Remove files that a killed process left half-written, and outputs of later iterations than this."""
        for entry in [*self.path.iterdir(), *self._outputs()]:
            number = _OWN_OUTPUT.fullmatch(entry.name)
            is_half = bool(_PART.fullmatch(entry.name)) and _is_own(entry.name)
            if is_half or entry.name == NEW or (number and int(number[1]) > iteration):
                entry.unlink(missing_ok=True)

    def begin(self, facts: Mapping[str, Any], section: Section, detector: Detector | None) -> None:
        """Write what stays the same from now on: settings, detector and, last, the description.

        facts : of ``run.json``; among them ``method``.
        section : the settings of that method.
        """
        self.write_settings(facts["method"], section)
        if detector is not None:
            from orienteer.detector.hdf5 import store_detector

            store_detector(self.detector, detector)
        description = {
            "format": FORMAT,
            "version": VERSION,
            "run_id": uuid.uuid4().hex,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            **facts,
            "settings_hash": hash_settings(lasting(read_settings(self.settings), section)),
            "versions": _versions(),
            "machine": {
                "host": socket.gethostname(),
                "processor": processor_name(),
                "cores": usable_cores(),
                "memory_GiB": round(memory_GiB()[0], 1),
            },
        }
        write_json(self._description, description)

    def describe(self) -> dict[str, Any]:
        """The content of ``run.json``."""
        if not self.is_run:
            if self.path.is_file():
                look = f"Look at a file with: orienteer inspect {shlex.quote(str(self.path))}"
                raise FileError(self.path, "is a file, not the folder of a reconstruction.", look)
            reason = "holds no run." if self.path.is_dir() else "there is no such folder."
            raise FileError(self.path, reason, self._where_runs_are())
        hint = "Give the folder of a run, or begin anew with --restart."
        described = read_described(self._description, "run", FORMAT, VERSION, hint)
        if missing := _NEEDED - set(described):
            raise FileError(self._description, f"is incomplete: '{min(missing)}' is missing.", hint)
        return described

    def _where_runs_are(self) -> str:
        """The hint for a folder without a run; names runs inside, as people often give the folder above."""
        with suppress(OSError):
            inside = sorted(path for path in self.path.iterdir() if RunDirectory(path).is_run)
            if inside:
                return f"Did you mean {' or '.join(shlex.quote(str(path)) for path in inside[:3])}?"
        return meant_instead(self.path, "Give the folder that a reconstruction has made.")

    def note(self, **facts: Any) -> None:
        """Add facts to the description that were not known when the run was begun."""
        write_json(self._description, {**self.describe(), **facts})

    def write_settings(self, method: str, section: Section) -> None:
        """Write the settings that are used from now on."""
        write_settings(self.settings, settings_tree(method, section))

    def read_settings(self, described: Mapping[str, Any], section: type[Section]) -> dict[str, Any]:
        """The settings of the run; a file with an edited setting that changes results is refused."""
        tree = read_settings(self.settings)
        if not is_as_begun(tree, section, described["settings_hash"]):
            raise FileError(
                self.settings,
                "was changed after the run had begun.",
                "Put it back as it was; to use other settings, begin another run with them.",
            )
        return with_names_of_today(tree, section)

    def read_detector(self) -> Detector | None:
        """The detector that was used; None if the data had none."""
        from orienteer.detector.hdf5 import stored_detector

        return stored_detector(self.detector)

    def write_results(
        self,
        volumes: Sequence[Volume],
        orientations: Mapping[str, Array],
        iteration: int,
        densities: Sequence[Volume] = (),
    ) -> None:
        """Write models, densities of the loop and orientations, each file whole or not at all."""
        from orienteer.run.orientations_file import write_orientations
        from orienteer.volume.opening import write_volume

        write_volume(self.intensity, volumes)
        for number, volume in enumerate(volumes, start=1):
            name = files.INTENSITY_MRC if len(volumes) == 1 else f"intensity_{number}.mrc"
            write_volume(self.path / name, volume)
        for number, density in enumerate(densities, start=1):
            name = (
                f"{files.LOOP_DENSITY}.mrc" if len(densities) == 1 else f"{files.LOOP_DENSITY}_{number}.mrc"
            )
            write_volume(self.path / name, density)
        self._forget_other_numbers(len(volumes))
        write_orientations(self.orientations, orientations, iteration)

    def _forget_other_numbers(self, n_models: int) -> None:
        """Remove maps from a time when there were more or fewer models."""
        for entry in self.path.iterdir():
            stem, _, number = entry.stem.rpartition("_")
            names = ("intensity", files.LOOP_DENSITY)
            is_single = entry.stem in names and n_models > 1
            is_numbered = stem in names and number.isdigit() and not 1 < n_models >= int(number)
            if entry.suffix == ".mrc" and (is_single or is_numbered):
                entry.unlink(missing_ok=True)

    def dragonfly_output(self, iteration: int) -> Path:
        """The path of Dragonfly's output after an iteration; makes its folder if needed."""
        folder = self.path / _DRAGONFLY
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise unwritable(folder, error) from error
        return folder / f"output_{iteration:03d}.h5"

    def _folders(self) -> list[Path]:
        """Folders below this one whose files a run writes and removes."""
        return [
            entry
            for entry in self.path.iterdir()
            if (entry.name in _FOLDERS or _OWN_PHASING.fullmatch(entry.name)) and entry.is_dir()
        ]

    def _outputs(self) -> Iterator[Path]:
        for folder in self._folders():
            yield from folder.iterdir()


def _is_own(name: str) -> bool:
    """Whether a file of this name belongs to a run."""
    part = _PART.fullmatch(name)
    final = part[1] if part else name
    return final in _OWN or any(pattern.fullmatch(final) for pattern in _OWN_PATTERNS)


def _versions() -> dict[str, str]:
    versions = {"orienteer": orienteer.__version__, "python": platform.python_version()}
    for name in _LIBRARIES:
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions
