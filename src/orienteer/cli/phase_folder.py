"""The folder that a density is written into: one writer at a time, and no other result is overwritten."""

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
from orienteer.validate.half_phasing import phased_folder


def folder_for(intensity: Path, model: int) -> Path:
    """The default folder of the density."""
    if intensity.is_dir():
        return phased_folder(intensity, model)
    return Path(f"{intensity.name.partition('.')[0]}_phased" + (f"_{model}" if model > 1 else ""))


def what_is_kept(folder: Path) -> str:
    """What is in the folder after phasing was stopped, in words."""
    is_there = (folder / DESCRIPTION).exists()
    return "the earlier density is unchanged" if is_there else "nothing was written"


def refuse_other_run(folder: Path, given: Intensity) -> None:
    """Refuse to write a density of another intensity into a run, where it would pass for the run's own."""
    directory = RunDirectory(folder)
    if directory.is_run and directory.describe()["run_id"] != given.origin.get("run_id"):
        raise FileError(
            folder, "is the folder of another run, with another intensity.", "Give another --out."
        )


def already_there(folder: Path, given: Intensity, chosen: PhaseSettings, seed: int) -> Phasing | None:
    """The density that an earlier command found with the same input; refuse to overwrite any other."""
    hint = "--restart replaces it; --out names another folder."
    if not (folder / DESCRIPTION).exists():
        names = () if RunDirectory(folder).is_run else (DENSITY_MRC, DENSITY_H5)
        for name in names:  # in a run, only a phasing that was killed leaves them
            if (folder / name).exists():
                raise FileError(folder / name, "exists already, but is not part of a complete phasing.", hint)
        return None
    try:
        found = Phasing.open(folder)
    except FileError as error:
        error.hint = f"{error.hint} {hint}".strip()
        raise
    others = _differences(found, given, chosen, seed)
    if others:
        raise FileError(
            folder, f"holds a density that was made with different input: {', '.join(others)}.", hint
        )
    return found


def _differences(found: Phasing, given: Intensity, chosen: PhaseSettings, seed: int) -> list[str]:
    """The names of the inputs and settings that differ from those of an earlier density."""
    names = ["intensity"] if found.origin.get("checksum") != given.origin["checksum"] else []
    names += ["seed"] if found.seed != seed else []
    settings = chosen.model_dump(mode="json")
    return names + [name for name, value in settings.items() if found.settings.get(name) != value]


@contextmanager
def to_oneself(folder: Path) -> Iterator[None]:
    """Keep other processes from phasing into the folder; a new folder that stays empty is removed."""
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
            with suppress(OSError):  # it is not empty: there is a density in it
                folder.rmdir()


def save_whole(found: Phasing, folder: Path) -> None:
    """Write all files; a request to stop waits that second, so that the result is complete."""
    with StopRequests() as stop:
        found.save(folder)
    if stop.is_requested:
        raise stop.exception(
            f"Stopped; the density has been written to {folder}.", "The same command shows it."
        )
