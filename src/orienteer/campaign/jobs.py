"""Jobs: the steps of rules for runs, and which worker has which.

A worker claims a job by changing its row; the database lets only one worker succeed.  A claim that is not
renewed expires.  The worker that takes the job over first checks what became of the step (``attempts``).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, and_, exists, or_, select

from orienteer.campaign.database import insert_once
from orienteer.campaign.rules import Rule
from orienteer.campaign.runs import at
from orienteer.campaign.schema import job, rule, run, sample
from orienteer.campaign.steps import steps_of

# A claim that is not renewed expires after this time, which far exceeds the clock difference of two machines.
LEASE_S = 120.0
_OPEN = ("working", "queued")


@dataclass(frozen=True)
class Job:
    """A step of a rule for a run, as held by a worker; see the table ``job``."""

    id: int
    run_id: int
    run: str
    rule: str
    step: str
    arguments: tuple[str, ...]
    folder: str
    product: str
    attempt: int
    begun: int
    worker: str
    lease_s: float
    slurm: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.step} of {self.run}"

    @property
    def is_batch(self) -> bool:
        """Whether the step continues in Slurm after its command; a user's own ``submit`` is not followed."""
        return self.arguments[0] == "submit" and bool(self.product)


def plan_jobs(connection: Connection) -> int:
    """Add the jobs that rules ask for and that do not exist yet; returns how many."""
    added = 0
    for each in connection.execute(select(rule).where(rule.c.is_on == 1)).all():
        made = Rule(**json.loads(each.definition))
        for found in connection.execute(_runs_for(each.id, made, each.since_s)).all():
            for number, step in enumerate(steps_of(made, found._asdict()), start=1):
                values = {
                    "rule_id": each.id,
                    "run_id": found.id,
                    "number": number,
                    "step": step.name[:40],
                    "arguments": json.dumps(step.arguments),
                    "folder": step.folder,
                    "product": step.product,
                    "created_s": time.time(),
                }
                added += insert_once(connection, job, values)
    return added


def claim_job(connection: Connection, worker: str, is_dead: Callable[[str], bool]) -> Job | None:
    """Claim the next job whose earlier steps are done, or one that its worker has left; None if none is left.

    is_dead : whether the worker of this name is known to have ended.
    """
    now = time.time()
    for found in connection.execute(_claimable()).all():
        is_left = found.lease_s < now or (found.worker != worker and is_dead(found.worker))
        if found.status in _OPEN and not is_left:
            continue
        taken = connection.execute(
            job.update()
            .where(job.c.id == found.id, job.c.status == found.status, job.c.worker == found.worker)
            .where(job.c.lease_s == found.lease_s)
            .values(
                status="working" if found.status == "waiting" else found.status,
                worker=worker,
                lease_s=now + LEASE_S,
            )
        )
        if taken.rowcount == 1:
            return _as_job(found, worker, now + LEASE_S)
    return None


def renew(connection: Connection, ids: Iterable[int], worker: str) -> None:
    """Extend the claims of a worker on these jobs."""
    mine = and_(job.c.id.in_(list(ids)), job.c.worker == worker)
    connection.execute(job.update().where(mine).values(lease_s=time.time() + LEASE_S))


def begin_attempt(connection: Connection, held: Job) -> bool:
    """Count one more attempt of a step; returns False if the worker no longer holds the job."""
    counted = {"attempt": held.attempt + 1, "begun": held.begun + 1}
    return _change(connection, held, started_s=time.time(), reason="", **counted)


def to_queue(connection: Connection, held: Job, numbers: Iterable[str]) -> bool:
    """Note that the step continues as these jobs of Slurm; returns whether the worker still held the job."""
    return _change(connection, held, status="queued", slurm=json.dumps(list(numbers)))


def end_job(connection: Connection, held: Job, status: str, reason: str = "") -> bool:
    """Note that the step is done or failed; returns whether the worker still held the job."""
    return _change(
        connection, held, status=status, reason=reason, ended_s=time.time(), worker="", lease_s=0.0
    )


def retry_failed(connection: Connection) -> int:
    """Set failed steps to waiting, so that they are tried again; returns how many there were."""
    values = {"status": "waiting", "reason": "", "begun": 0, "slurm": "", "worker": "", "lease_s": 0.0}
    # A new attempt number: the folder of the step still holds the end of the failed attempt.
    again = job.update().where(job.c.status == "failed").values(attempt=job.c.attempt + 1, **values)
    return connection.execute(again).rowcount


def list_jobs(
    connection: Connection, run_id: int | None = None, newest: int | None = None
) -> list[dict[str, Any]]:
    """Jobs for people and pages: those of one run in their order, otherwise the newest first."""
    joined = job.join(run, job.c.run_id == run.c.id).join(rule, job.c.rule_id == rule.c.id)
    query = select(job, run.c.name.label("run"), rule.c.name.label("rule")).select_from(joined)
    if run_id is not None:
        query = query.where(job.c.run_id == run_id).order_by(job.c.id)
    else:
        query = query.order_by(job.c.id.desc())
    return [
        {
            "id": row.id,
            "run": row.run,
            "rule": row.rule,
            "step": row.step,
            "status": row.status,
            "reason": row.reason,
            "attempt": row.attempt,
            "worker": row.worker,
            "slurm": json.loads(row.slurm or "[]"),
            "folder": row.folder,
            "created": at(row.created_s),
            "started": at(row.started_s),
            "ended": at(row.ended_s),
        }
        for row in connection.execute(query if newest is None else query.limit(newest))
    ]


def _runs_for(rule_id: int, made: Rule, since_s: float) -> Any:
    """Closed runs to which the rule applies and for which it has no jobs yet."""
    planned = exists().where(job.c.rule_id == rule_id, job.c.run_id == run.c.id)
    joined = run.outerjoin(sample, run.c.sample_id == sample.c.id)
    query = select(run.c.id, run.c.name, run.c.data, run.c.folder, sample.c.name.label("sample"))
    query = query.select_from(joined).where(~planned, run.c.is_open == 0, run.c.created_s >= since_s)
    query = query.where(or_(run.c.data.is_not(None), run.c.folder.is_not(None)))
    return query.where(sample.c.name == made.sample) if made.sample else query


def _claimable() -> Any:
    earlier = job.alias("earlier")
    is_early = exists().where(
        earlier.c.rule_id == job.c.rule_id,
        earlier.c.run_id == job.c.run_id,
        earlier.c.number < job.c.number,
        earlier.c.status != "done",
    )
    is_ready = and_(job.c.status == "waiting", rule.c.is_on == 1, ~is_early)
    joined = job.join(run, job.c.run_id == run.c.id).join(rule, job.c.rule_id == rule.c.id)
    query = select(job, run.c.name.label("run"), rule.c.name.label("rule")).select_from(joined)
    return query.where(or_(job.c.status.in_(_OPEN), is_ready)).order_by(job.c.id)


def _as_job(row: Row[Any], worker: str, lease_s: float) -> Job:
    return Job(
        row.id,
        row.run_id,
        row.run,
        row.rule,
        row.step,
        tuple(json.loads(row.arguments)),
        row.folder,
        row.product or "",
        row.attempt,
        row.begun,
        worker,
        lease_s,
        tuple(json.loads(row.slurm or "[]")),
    )


def _change(connection: Connection, held: Job, **values: Any) -> bool:
    mine = and_(job.c.id == held.id, job.c.worker == held.worker, job.c.status.in_(_OPEN))
    return connection.execute(job.update().where(mine).values(**values)).rowcount == 1
