"""JobState: the state of a job according to Slurm, and its meaning in words."""

from __future__ import annotations

from dataclasses import dataclass

from orienteer.cluster.duration import parse_slurm_time

SQUEUE_FORMAT = "%i|%T|%r|%L|%M|%N|%S"
SACCT_FORMAT = "JobID,State,Elapsed,NodeList"
_WAITING = ("PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "CONFIGURING")
_WORKING = ("RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING")
# Why a job waits, in words, by the beginning of the reason that Slurm gives.
_REASONS = {
    "Priority": "other jobs come first",
    "Resources": "its nodes are busy",
    "DependencyNeverSatisfied": "waits for a job that ended otherwise; it will never start",
    "Dependency": "comes after another job",
    "BeginTime": "starts again shortly",
    "JobHeldUser": "you hold it (scontrol release)",
    "JobHeldAdmin": "an administrator holds it",
    "JobArrayTaskLimit": "the limit of its array for jobs at once is reached",
    "PartitionTimeLimit": "asks for more time than its partition allows; it will never start",
    "PartitionNodeLimit": "asks for more nodes than its partition allows; it will never start",
    "PartitionDown": "its partition is down",
    "PartitionInactive": "its partition is closed",
    "PartitionConfig": "asks for more than its partition allows; it will never start",
    "ReqNodeNotAvail": "its nodes are down or reserved",
    "Reservation": "waits for its reservation",
    "Nodes required for job are DOWN": "its nodes are down",
    "InvalidAccount": "its account is not valid; it will never start",
    "InvalidQOS": "its quality of service is not valid; it will never start",
    "QOS": "a limit of its quality of service is reached",
    "Assoc": "a limit of its account is reached",
    "Licenses": "waits for a licence",
    "NodeDown": "a node went down",
    "launch failed": "could not be started and is held (scontrol release)",
}


@dataclass(frozen=True)
class JobState:
    """A job as Slurm reports it.

    state : one word, such as PENDING; reason : why it waits or ended; start : when it is expected to start.
    """

    number: str
    state: str
    reason: str = ""
    seconds_left: int | None = None
    seconds_used: int | None = None
    nodes: str = ""
    start: str = ""

    @property
    def is_waiting(self) -> bool:
        """Whether it has not started yet."""
        return self.state in _WAITING

    @property
    def is_working(self) -> bool:
        """Whether it has nodes now."""
        return self.state in _WORKING

    @property
    def is_over(self) -> bool:
        """Whether it has ended for good."""
        return not (self.is_waiting or self.is_working)

    @property
    def words(self) -> str:
        """The state in words.

        >>> JobState("7", "PENDING", "Resources").words
        'waits: its nodes are busy'
        """
        if self.is_waiting:
            start = f", perhaps at {self.start.replace('T', ' ')}" if self.start[:1].isdigit() else ""
            return f"waits: {reason_in_words(self.reason)}{start}"
        if self.is_working:
            return (
                "works"
                if self.state == "RUNNING"
                else "ends"
                if self.state == "COMPLETING"
                else self.state.lower()
            )
        return {
            "COMPLETED": "ended well",
            "FAILED": "ended before its work was done",
            "TIMEOUT": "was cut off by its time limit",
            "OUT_OF_MEMORY": "ran out of memory",
            "NODE_FAIL": "lost a node",
            "PREEMPTED": "was preempted by another job",
            "CANCELLED": "was cancelled",
            "DEADLINE": "missed its deadline",
        }.get(self.state, self.state.lower().replace("_", " "))


def reason_in_words(reason: str) -> str:
    """Why a job waits; a reason that is not in the table stays in the words of Slurm.

    >>> reason_in_words("QOSMaxJobsPerUserLimit"), reason_in_words("Cleaning")
    ('a limit of its quality of service is reached (QOSMaxJobsPerUserLimit)', 'Cleaning')
    """
    for beginning, words in _REASONS.items():
        if reason.startswith(beginning):
            return words if reason == beginning else f"{words} ({reason})"
    return "" if reason in ("None", "") else reason


def parse_squeue(text: str) -> dict[str, JobState]:
    """Jobs by number from lines in SQUEUE_FORMAT."""
    found = {}
    for line in text.splitlines():
        parts = [part.strip() for part in line.split("|")]
        if len(parts) == 7:
            number, state, reason, left, used, nodes, start = parts
            times = parse_slurm_time(left), parse_slurm_time(used)
            found[number] = JobState(number, state, "" if reason == "None" else reason, *times, nodes, start)
    return found


def parse_sacct(text: str) -> dict[str, JobState]:
    """Jobs by number from lines in SACCT_FORMAT; "CANCELLED by 1000" counts as CANCELLED."""
    found = {}
    for line in text.splitlines():
        parts = [part.strip() for part in line.split("|")]
        if len(parts) == 4 and parts[1]:
            number, state, used, nodes = parts
            found[number] = JobState(
                number, state.split()[0].rstrip("+"), seconds_used=parse_slurm_time(used), nodes=nodes
            )
    return found
