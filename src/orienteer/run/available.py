"""How many ranks can be started now: as many as asked for, fewer when nodes of a Slurm job were lost."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from dataclasses import dataclass

from orienteer.run.launch import in_slurm

# How sinfo names the states of nodes that do not work; "*" after any state: the node does not answer.
_LOST = ("down", "drain", "drng", "fail", "unk", "boot", "power", "maint")
_ANSWER_S = 30.0


@dataclass(frozen=True)
class Available:
    """Ranks to start, and nodes of the job on which nothing can be started."""

    n_ranks: int
    lost_nodes: tuple[str, ...] = ()


def available_ranks(asked: int | None) -> Available:
    """The ranks that can be started now.

    asked : ranks that the user wants; None: one per task of the Slurm job, or one outside of a job.
    """
    n_ranks = asked or _tasks()
    if not in_slurm():
        return Available(n_ranks)
    states = node_states(os.environ.get("SLURM_JOB_NODELIST", ""))
    lost = tuple(sorted(name for name, state in states.items() if is_lost(state)))
    n_left = len(states) - len(lost)
    if not lost or not n_left:
        return Available(n_ranks)
    return Available(max(1, n_ranks * n_left // len(states)), lost)


def _tasks() -> int:
    """Tasks of the Slurm job; 1 outside of a job."""
    if not in_slurm():
        return 1
    for name in ("SLURM_NTASKS", "SLURM_JOB_NUM_NODES"):
        if os.environ.get(name, "").isdigit():
            return max(1, int(os.environ[name]))
    return 1


def node_states(nodes: str) -> dict[str, str]:
    """State of each of these nodes; empty if Slurm does not answer.

    nodes : as Slurm writes them, such as "gpu[01-04]".
    """
    if not nodes:
        return {}
    command = ["sinfo", "--noheader", "--Node", f"--nodes={nodes}", "--format=%N %T"]
    with suppress(OSError, subprocess.SubprocessError):
        said = subprocess.run(command, capture_output=True, text=True, timeout=_ANSWER_S, check=True).stdout
        return dict(line.split()[:2] for line in said.splitlines() if len(line.split()) >= 2)
    return {}


def is_lost(state: str) -> bool:
    """Whether nothing can be started on a node of this state.

    >>> [is_lost(state) for state in ("allocated", "mixed", "down*", "allocated*", "draining")]
    [False, False, True, True, False]
    """
    if state.startswith("draining"):  # the node takes no new jobs, but this one may go on
        return False
    return state.endswith("*") or state.startswith(_LOST)
