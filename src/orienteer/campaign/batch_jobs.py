"""Steps that went to Slurm: found again by the records in the folder of their run, and judged by it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from orienteer.campaign.jobs import Job
from orienteer.cluster.queue import read_queue
from orienteer.cluster.records import read_records
from orienteer.run.standing import read_standing


def open_numbers(job: Job) -> tuple[str, ...]:
    """Batch jobs for the run that the step makes which wait or work now."""
    numbers = [record.number for record in read_records(Path(job.product))]
    states = read_queue(numbers, newest_s=0).jobs
    return tuple(number for number in numbers if number in states and not states[number].is_over)


def submitted_numbers(job: Job) -> tuple[str, ...]:
    """Batch jobs that a submission has just made: those that are open, or the last where it ended at once."""
    return open_numbers(job) or tuple(record.number for record in read_records(Path(job.product))[-1:])


def look_at_batch(job: Job) -> tuple[Literal["working", "done", "failed"], str]:
    """Where a step that went to Slurm stands, and why it failed.

    A job that Slurm no longer knows has ended; whether well, the folder of the run says.
    """
    standing = read_standing(Path(job.product))
    if standing.state == "finished":
        return "done", ""
    queue = read_queue(job.slurm)
    if not queue.problem and not set(job.slurm) <= set(queue.jobs):
        queue = read_queue(job.slurm, newest_s=0)  # the answer may be older than the job
    if queue.problem:
        return "working", ""  # Slurm does not answer now
    states = [queue.jobs[number] for number in job.slurm if number in queue.jobs]
    if standing.state == "working" or any(not state.is_over for state in states):
        return "working", ""
    words = states[-1].words if states else "is not known to Slurm any more"
    return "failed", f"batch job {job.slurm[-1]} {words}{f': {standing.reason}' if standing.reason else ''}"
