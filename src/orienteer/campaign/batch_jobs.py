"""Steps that went to Slurm: their batch jobs and their state are read from the folder of their run."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from orienteer.campaign.jobs import Job
from orienteer.cluster.queue import read_queue
from orienteer.cluster.records import read_records
from orienteer.run.standing import read_standing


def open_numbers(job: Job) -> tuple[str, ...]:
    """The batch jobs of the step's run that are waiting or running now."""
    numbers = [record.number for record in read_records(Path(job.product))]
    states = read_queue(numbers, newest_s=0).jobs
    return tuple(number for number in numbers if number in states and not states[number].is_over)


def submitted_numbers(job: Job) -> tuple[str, ...]:
    """The batch jobs of a submission: those still open, or the last one if it has already ended."""
    return open_numbers(job) or tuple(record.number for record in read_records(Path(job.product))[-1:])


def look_at_batch(job: Job) -> tuple[Literal["working", "done", "failed"], str]:
    """The state of a step that went to Slurm, and why it failed.

    A job that Slurm no longer knows has ended; the folder of the run shows whether it succeeded.
    """
    standing = read_standing(Path(job.product))
    if standing.state == "finished":
        return "done", ""
    queue = read_queue(job.slurm)
    if not queue.problem and not set(job.slurm) <= set(queue.jobs):
        queue = read_queue(job.slurm, newest_s=0)  # the cached answer may be older than the job
    if queue.problem:
        return "working", ""  # Slurm does not answer; ask again later
    states = [queue.jobs[number] for number in job.slurm if number in queue.jobs]
    if standing.state == "working" or any(not state.is_over for state in states):
        return "working", ""
    words = states[-1].words if states else "is no longer known to Slurm"
    return "failed", f"batch job {job.slurm[-1]} {words}{f': {standing.reason}' if standing.reason else ''}"
