"""The jobs that were submitted for a run: one line per job in its folder, so that they can be found again."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path

from orienteer.cluster.job import SLURM_FOLDER
from orienteer.compute.plain_json import json_line
from orienteer.compute.reading import reading, writing

_NAME = "jobs.jsonl"


@dataclass(frozen=True)
class JobRecord:
    """A job that Slurm has accepted.

    job : its number; task : of an array, else None; after : jobs that it waits for; submitted : time, UTC.
    """

    job: str
    task: int | None
    name: str
    submitted: str
    nodes: int
    site: str
    log: str
    script: str
    after: tuple[str, ...] = ()

    @property
    def number(self) -> str:
        """The number as Slurm shows it, such as 4711 or 4711_3."""
        return self.job if self.task is None else f"{self.job}_{self.task}"


def append_record(run: Path, record: JobRecord) -> None:
    """Add a job to those of a run."""
    path = run / SLURM_FOLDER / _NAME
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(json_line(asdict(record)))


def read_records(run: Path) -> list[JobRecord]:
    """The jobs of a run, oldest first; broken lines are ignored."""
    path = run / SLURM_FOLDER / _NAME
    if not path.is_file():
        return []
    with reading(path, "list of jobs"):
        lines = path.read_text(encoding="utf-8").splitlines()
    known = {field.name for field in fields(JobRecord)}
    records = []
    for line in lines:
        try:
            told = {name: value for name, value in json.loads(line).items() if name in known}
            records.append(JobRecord(**{**told, "after": tuple(told.get("after", ()))}))
        except (ValueError, TypeError, AttributeError):
            continue
    return records


def now() -> str:
    """The time in the form of the records."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def how_to_cancel(numbers: list[str]) -> str:
    """The command that cancels jobs."""
    return shlex.join(["scancel", *numbers])
