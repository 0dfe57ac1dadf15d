"""The jobs of this user in Slurm: one query for all of them, at most once in half a minute.

The answer is kept in the user's cache folder, so that any number of terminals that watch runs cost the
scheduler only one query.  A scheduler that did not answer is not asked again for the same time.
"""

from __future__ import annotations

import fcntl
import getpass
import hashlib
import json
import os
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from orienteer.cluster.job_state import SACCT_FORMAT, SQUEUE_FORMAT, JobState, parse_sacct, parse_squeue
from orienteer.cluster.slurm import SlurmError, call, is_here
from orienteer.compute.plain_json import write_json
from orienteer.errors import OrienteerError

NEWEST_S = 30.0
# A query of Slurm's accounting (sacct) costs more than one of its queue, and its answer about an ended job
# stays true.
BOOKS_EVERY_S = 300.0
_PATIENCE_S = 20.0
_MOST_ENDED = 2000


@dataclass(frozen=True)
class Queue:
    """The known jobs, by number.

    age_s : age of the answer; problem : why there is no answer, or only an old one.
    """

    jobs: dict[str, JobState] = field(default_factory=dict)
    age_s: float = 0.0
    problem: str = ""


def read_queue(numbers: Collection[str], newest_s: float = NEWEST_S) -> Queue:
    """The state of the jobs with these numbers, from an answer that is at most ``newest_s`` old."""
    if not numbers:
        return Queue()
    if not is_here("squeue"):
        return Queue(problem="there is no Slurm on this machine")
    with _only_one():
        answer = _read_cache()
        now = time.time()
        if not 0 <= now - answer["asked"] < newest_s:
            answer = _asked(answer)
        jobs = _states(answer["queue"])
        unknown = set(numbers) - set(jobs) - set(answer["ended"])
        if unknown and not 0 <= now - answer["books_asked"] < BOOKS_EVERY_S:
            answer = _looked_up(answer, unknown)
        with suppress(OrienteerError):  # without a cache, the next call asks Slurm again
            _write_cache(answer)
    return Queue({**_states(answer["ended"]), **jobs}, time.time() - answer["answered"], answer["problem"])


def _asked(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer, updated by squeue; if squeue fails, the earlier answer with the problem."""
    now = time.time()
    try:
        told = call(
            "squeue",
            "--noheader",
            "--array",
            "--states=all",
            f"--user={getpass.getuser()}",
            f"--format={SQUEUE_FORMAT}",
            patience_s=_PATIENCE_S,
        )
    except SlurmError as error:
        return {**answer, "asked": now, "problem": error.message}
    found = parse_squeue(told)
    ended = {**answer["ended"], **{name: asdict(job) for name, job in found.items() if job.is_over}}
    return {
        **answer,
        "asked": now,
        "answered": now,
        "problem": "",
        "queue": {name: asdict(job) for name, job in found.items()},
        "ended": dict(list(ended.items())[-_MOST_ENDED:]),
    }


def _looked_up(answer: dict[str, Any], numbers: Collection[str]) -> dict[str, Any]:
    """The answer, with jobs that have left the queue added from sacct; many clusters have no accounting."""
    found: dict[str, JobState] = {}
    with suppress(SlurmError):
        told = call(
            "sacct",
            "--noheader",
            "--parsable2",
            "--allocations",
            f"--format={SACCT_FORMAT}",
            f"--jobs={','.join(sorted(numbers))}",
            patience_s=_PATIENCE_S,
        )
        found = parse_sacct(told)
    ended = {**answer["ended"], **{name: asdict(job) for name, job in found.items() if job.is_over}}
    return {**answer, "books_asked": time.time(), "ended": ended}


def _states(told: dict[str, Any]) -> dict[str, JobState]:
    return {name: JobState(**job) for name, job in told.items()}


def _cache() -> Path:
    home = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    # On another cluster, or for another user of the same home, the same numbers mean other jobs.
    which = "|".join(
        [os.environ.get(name, "") for name in ("SLURM_CONF", "SLURM_CLUSTERS")] + [getpass.getuser()]
    )
    return home / "orienteer" / f"queue-{hashlib.blake2b(which.encode(), digest_size=6).hexdigest()}.json"


@contextmanager
def _only_one() -> Iterator[None]:
    """Let one process ask at a time; those that waited find its answer in the cache."""
    path = _cache().with_suffix(".lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        yield
        return
    try:
        with suppress(OSError):  # some file systems have no locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _read_cache() -> dict[str, Any]:
    empty = {"asked": 0.0, "answered": 0.0, "books_asked": 0.0, "problem": "", "queue": {}, "ended": {}}
    try:
        told = json.loads(_cache().read_text(encoding="utf-8"))
        read = {name: told[name] for name in empty}
        _states(read["queue"]), _states(read["ended"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return empty
    return read


def _write_cache(answer: dict[str, Any]) -> None:
    write_json(_cache(), answer)
