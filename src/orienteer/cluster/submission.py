"""Submit jobs to Slurm: one, or several in a row, each with a record in the folders of its runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from orienteer.cluster.job import Job
from orienteer.cluster.records import JobRecord, append_record, now
from orienteer.cluster.settings import ClusterSettings
from orienteer.cluster.slurm import SlurmError, call, submit
from orienteer.compute.atomic import atomic_path
from orienteer.compute.reading import writing
from orienteer.errors import OrienteerError, SettingsError

_AFTER = re.compile(r"(?:(after|afterany|afterok|afternotok|aftercorr):)?(\d+(?:_\d+)?)")


@dataclass(frozen=True)
class Submission:
    """Jobs that Slurm has accepted.

    numbers : of the jobs, in their order; records : one per run and job; script : path of the kept copy.
    """

    numbers: tuple[str, ...]
    records: tuple[JobRecord, ...]
    script: str


def dependency(after: Sequence[str]) -> str:
    """The ``--dependency`` of sbatch; a bare number means that this job has to succeed first.

    >>> dependency(["4711", "afterany:4712"])
    'afterok:4711,afterany:4712'
    """
    told = []
    for text in after:
        parts = _AFTER.fullmatch(text.strip())
        if parts is None:
            raise SettingsError(
                f"--after {text}: this is not a job.",
                "Give its number, such as 4711 (it has to succeed) or afterany:4711 (however it ends).",
            )
        told.append(f"{parts[1] or 'afterok'}:{parts[2]}")
    return ",".join(told)


def chain_options(first: str, before: Sequence[str]) -> list[str]:
    """Options of the next job in a row: it starts only if all jobs before it were cut off.

    first : dependency of the first job in the row; before : numbers of the jobs before this one.

    >>> chain_options("", ["7", "8"])
    ['--dependency=afternotok:7:8', '--kill-on-invalid-dep=yes']
    """
    if before:
        return [f"--dependency=afternotok:{':'.join(before)}", "--kill-on-invalid-dep=yes"]
    return [f"--dependency={first}"] if first else []


def submit_job(job: Job, script: str, settings: ClusterSettings, after: Sequence[str] = ()) -> Submission:
    """Submit a job, and those that go on if it is cut off; all of them or none."""
    first = dependency(after)
    is_new = not job.logs.exists()
    with writing(job.logs):
        job.logs.mkdir(parents=True, exist_ok=True)  # Slurm makes no folder for a log
    numbers: list[str] = []
    try:
        for _ in range(settings.chain):
            numbers.append(submit(script, chain_options(first, numbers)))
    except OrienteerError:
        if numbers:
            with suppress(SlurmError):
                call("scancel", *numbers)
        if is_new:
            _remove(job)
        raise
    kept = job.logs / f"{numbers[0]}.sh"
    with atomic_path(kept) as temporary:
        temporary.write_text(script, encoding="utf-8")
    records = [
        JobRecord(
            number,
            task if job.is_array else None,
            job.name,
            now(),
            settings.nodes,
            settings.site,
            str(job.log(number, task if job.is_array else None)),
            str(kept),
            tuple(numbers[:place]) or tuple(after),
        )
        for place, number in enumerate(numbers)
        for task in range(len(job.works))
    ]
    for record in records:
        append_record(job.folder / job.works[record.task or 0].folder, record)
    return Submission(tuple(numbers), tuple(records), str(kept))


def _remove(job: Job) -> None:
    """Remove the log folder of a job that Slurm refused, and the folder above it if that is empty."""
    with suppress(OSError):  # the folder holds other files
        job.logs.rmdir()
        job.logs.parent.rmdir()
