"""Job: what a batch job has to do; what it asks Slurm for is in the settings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SLURM_FOLDER = "slurm"


@dataclass(frozen=True)
class Work:
    """One run of a job.

    arguments : of the ``orienteer`` command, such as ("run", "runs/r0042.toml"); folder : of the run.
    """

    arguments: tuple[str, ...]
    folder: Path


@dataclass(frozen=True)
class Job:
    """One run, or several as an array.

    folder : in which the commands run; logs : folder in which Slurm writes their output.
    """

    name: str
    works: tuple[Work, ...]
    folder: Path
    logs: Path

    @classmethod
    def of(cls, works: Sequence[Work], folder: Path, name: str = "") -> Job:
        """The job that does these works; an array is named after the folder that holds its runs."""
        folders = [folder / work.folder for work in works]
        together = folders[0] if len(works) == 1 else _above(folders)
        return cls(job_name(name or together.name), tuple(works), folder, together / SLURM_FOLDER)

    @property
    def is_array(self) -> bool:
        """Whether there are several runs."""
        return len(self.works) > 1

    @property
    def log_pattern(self) -> Path:
        """The path of the log in Slurm's notation: %j is the job; %A and %a are array and task."""
        return self.logs / ("%A_%a.log" if self.is_array else "%j.log")

    def log(self, number: str, task: int | None) -> Path:
        """The log of a job that Slurm has accepted, by its number."""
        return self.logs / (f"{number}.log" if task is None else f"{number}_{task}.log")


def job_name(text: str) -> str:
    """A text as a job name, without blanks and unusual signs.

    >>> job_name("r0042 (second try)")
    'r0042-second-try'
    """
    return re.sub(r"[^\w.+=-]+", "-", text).strip("-")[:60] or "orienteer"


def _above(folders: Sequence[Path]) -> Path:
    """The deepest folder that holds all of them."""
    together = folders[0].parent
    while not all(folder.is_relative_to(together) for folder in folders):
        together = together.parent
    return together
