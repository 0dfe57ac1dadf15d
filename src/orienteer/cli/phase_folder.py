"""The folder that a density is written into: one writer at a time, and nothing of somebody else is lost."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from orienteer.compute.atomic import unwritable
from orienteer.errors import FileError
from orienteer.phase.files import DENSITY_H5, DENSITY_MRC, DESCRIPTION
from orienteer.phase.result import Phasing
from orienteer.phase.settings import PhaseSettings
from orienteer.run.directory import RunDirectory
from orienteer.run.intensity import Intensity
from orienteer.run.lock import PHASING, RunLock
from orienteer.run.signals import StopRequests


def folder_for(intensity: Path, model: int) -> Path:
    """Where the density goes when nobody says."""
    if intensity.is_dir():
        return intensity if model == 1 else intensity / f"phased_model_{model}"
    return Path(f"{intensity.name.partition('.')[0]}_phased" + (f"_{model}" if model > 1 else ""))


def what_is_kept(folder: Path) -> str:
    """What is in the folder after a phasing that was stopped, in words."""
    is_there = (folder / DESCRIPTION).exists()
    return "the density that was there is left as it was" if is_there else "nothing was written"


def refuse_other_run(folder: Path, given: Intensity) -> None:
    """Refuse the folder of a run for the density of another intensity, which would pass for the run's own."""
    directory = RunDirectory(folder)
    if directory.is_run and directory.describe()["run_id"] != given.origin.get("run_id"):
        raise FileError(folder, "is the folder of a run with another intensity.", "Give another --out.")


def already_there(folder: Path, given: Intensity, chosen: PhaseSettings, seed: int) -> Phasing | None:
    """What an earlier command has found in the same way; something else is not written over."""
    hint = "--restart writes over it; --out names another folder."
    if not (folder / DESCRIPTION).exists():
        names = () if RunDirectory(folder).is_run else (DENSITY_MRC, DENSITY_H5)
        for name in names:  # in a run they are what a phasing that was killed has left
            if (folder / name).exists():
                raise FileError(folder / name, "is there already, from something else.", hint)
        return None
    try:
        found = Phasing.open(folder)
    except FileError as error:
        error.hint = f"{error.hint} {hint}".strip()
        raise
    others = _differences(found, given, chosen, seed)
    if others:
        raise FileError(folder, f"holds a density that was made with another {', '.join(others)}.", hint)
    return found


def _differences(found: Phasing, given: Intensity, chosen: PhaseSettings, seed: int) -> list[str]:
    """What a density was made with that is another now, by name."""
    names = ["intensity"] if found.origin.get("checksum") != given.origin["checksum"] else []
    names += ["seed"] if found.seed != seed else []
    settings = chosen.model_dump(mode="json")
    return names + [name for name, value in settings.items() if found.settings.get(name) != value]


@contextmanager
def to_oneself(folder: Path) -> Iterator[None]:
    """Inside the block no other process phases into the folder; one that stays empty is not left behind."""
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from error
    try:
        with RunLock(folder, PHASING, "phasing into this folder"):
            yield
    finally:
        if is_new:
            with suppress(OSError):  # there is a density in it
                folder.rmdir()


def save_whole(found: Phasing, folder: Path) -> None:
    """Write all files; who wants to stop meanwhile waits that second, and no half of a result is left."""
    with StopRequests() as stop:
        found.save(folder)
    if stop.is_requested:
        raise stop.exception(f"Stopped; the density is written to {folder}.", "The same command shows it.")
