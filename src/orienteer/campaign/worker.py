"""Worker: looks for new runs, and carries out the steps that rules ask for, in order and each once.

A worker keeps nothing important in memory.  If it is killed, its steps go on; the next worker, on this or
another machine that sees the same folders, finds them by their claims and folders and takes over.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from orienteer.campaign import attempts, jobs
from orienteer.campaign.batch_jobs import look_at_batch, open_numbers, submitted_numbers
from orienteer.campaign.campaign import Campaign
from orienteer.campaign.jobs import Job
from orienteer.campaign.products import take_in
from orienteer.campaign.watching import add_new_runs
from orienteer.errors import FileError, OrienteerError
from orienteer.run.lock import Holder

# How often a step is started in all, if it is cut off each time.
ATTEMPTS = 3
_RENEW_EVERY_S = jobs.LEASE_S / 6
# Statuses of steps ended by a signal (Ctrl-C, batch system, reboot): these are started again.  A step that
# failed by itself would fail again.
_SENT_AWAY = tuple(sign for number in (1, 2, 9, 10, 15) for sign in (-number, 128 + number))


class Worker:
    """A worker of a campaign.

    at_once : how many steps it runs at the same time.
    tell : called with a sentence about each thing that happens.
    """

    def __init__(self, campaign: Campaign, at_once: int = 1, tell: Callable[[str], None] = print) -> None:
        self.campaign = campaign
        self.at_once = at_once
        self.name = name_of(Holder.me())
        self._tell = tell
        self._held: dict[int, Job] = {}
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._renewed = time.monotonic()

    def work(self, once: bool = False, every_s: float = 2.0) -> None:
        """Work forever, or, with ``once``, until nothing is left to do."""
        while True:
            is_busy = self.look()
            if once and not is_busy:
                return
            time.sleep(min(every_s, 0.2) if is_busy else every_s)

    def look(self) -> bool:
        """Do what can be done now without waiting; returns whether any step is in progress."""
        for name in add_new_runs(self.campaign):
            self._tell(f"new run {name}")
        database = self.campaign.database
        database.write(jobs.plan_jobs)
        while len(self._held) < self.at_once:
            taken = database.write(lambda connection: jobs.claim_job(connection, self.name, is_dead))
            if taken is None:
                break
            self._held[taken.id] = taken
        if time.monotonic() - self._renewed > _RENEW_EVERY_S:
            database.write(lambda connection: jobs.renew(connection, self._held, self.name))
            self._renewed = time.monotonic()
        looked_after = list(self._held.values())
        for held in looked_after:
            self._look_after(held)
        return bool(looked_after)

    def _look_after(self, held: Job) -> None:
        if held.slurm:
            state, words = look_at_batch(held)
            if state != "working":
                self._end(held, state, words)
            return
        process = self._processes.get(held.id)
        if process is not None and process.poll() is None:
            return
        standing = attempts.look(Path(held.folder), held.attempt)
        if standing.state == "alive":
            return
        if standing.state == "ended" and standing.status not in _SENT_AWAY:
            self._ended(held, standing.status)
        elif held.begun >= ATTEMPTS:
            self._end(held, "failed", f"was started {held.begun} times and cut off each time")
        else:
            self._begin(held)

    def _begin(self, held: Job) -> None:
        if held.is_batch and (numbers := open_numbers(held)):
            self._to_queue(held, numbers)  # the previous worker submitted it, but died before noting it
            return
        folder = Path(held.folder)
        try:
            with attempts.beginning(folder) as lock:
                if lock is None:  # the step is running after all; look again later
                    return
                if not self.campaign.database.write(lambda connection: jobs.begin_attempt(connection, held)):
                    self._forget(held)
                    return
                held = self._held[held.id] = replace(held, attempt=held.attempt + 1, begun=held.begun + 1)
                self._processes[held.id] = attempts.start(
                    folder, held.attempt, held.arguments, folder.parents[1], lock
                )
        except FileError as error:
            self._end(held, "failed", error.message)
            return
        self._tell(f"{held} begins{'' if held.begun == 1 else ' again'}")

    def _ended(self, held: Job, status: int) -> None:
        if status != 0:
            words = attempts.last_words(Path(held.folder)) or f"it exited with status {status}"
            self._end(held, "failed", words)
        elif held.is_batch:
            self._to_queue(held, submitted_numbers(held))
        else:
            self._end(held, "done", "")

    def _to_queue(self, held: Job, numbers: tuple[str, ...]) -> None:
        if not numbers:
            self._end(held, "failed", "was submitted, but no batch job is known")
        elif self.campaign.database.write(lambda connection: jobs.to_queue(connection, held, numbers)):
            self._held[held.id] = replace(held, slurm=numbers)
            self._tell(f"{held} is batch job {', '.join(numbers)}")
        else:
            self._forget(held)

    def _end(self, held: Job, status: str, reason: str) -> None:
        if status == "done" and held.product:
            try:
                take_in(self.campaign, held.run_id, Path(held.product))
            except OrienteerError as error:
                status, reason = "failed", error.message
        if self.campaign.database.write(lambda connection: jobs.end_job(connection, held, status, reason)):
            self._tell(f"{held} {status}{f': {reason}' if reason else ''}")
        self._forget(held)

    def _forget(self, held: Job) -> None:
        self._held.pop(held.id, None)
        self._processes.pop(held.id, None)


def name_of(holder: Holder) -> str:
    """The name of a process in the database."""
    return f"{holder.host} {holder.pid} {holder.began}"


def is_dead(worker: str) -> bool:
    """Whether a worker of this machine has ended; False for other machines, where only the lease shows it."""
    host, pid, began = [*worker.rsplit(" ", 2), "", ""][:3]
    holder = Holder(host, int(pid) if pid.isdigit() else 0, began)
    return holder.is_here and not holder.is_alive_here
