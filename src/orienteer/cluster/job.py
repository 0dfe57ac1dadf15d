"""Job: what is to be done by a batch job, apart from how it is asked for."""

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

    folder : in which the commands are given; logs : where Slurm writes what they say.
    """

    name: str
    works: tuple[Work, ...]
    folder: Path
    logs: Path

    @classmethod
    def of(cls, works: Sequence[Work], folder: Path, name: str = "") -> Job:
        """The job that does these; an array is called after the folder that holds its runs."""
        folders = [folder / work.folder for work in works]
        together = folders[0] if len(works) == 1 else _above(folders)
        return cls(job_name(name or together.name), tuple(works), folder, together / SLURM_FOLDER)

    @property
    def is_array(self) -> bool:
        """Whether there are several runs."""
        return len(self.works) > 1

    @property
    def log_pattern(self) -> Path:
        """What the log is called, in Slurm's words: %j is the job; %A and %a are array and task."""
        return self.logs / ("%A_%a.log" if self.is_array else "%j.log")

    def log(self, number: str, task: int | None) -> Path:
        """The log of a job that was taken."""
        return self.logs / (f"{number}.log" if task is None else f"{number}_{task}.log")


def job_name(text: str) -> str:
    """A name as Slurm and its users like it.

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
