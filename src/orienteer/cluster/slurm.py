"""Calls of Slurm's programs, with a time limit; their error messages become errors of Orienteer."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence

from orienteer.errors import OrienteerError

PATIENCE_S = 60.0
_COMPLAINT = re.compile(r"^(?:\w+: )?(?:error|fatal|warning): ", re.MULTILINE)

# Messages that mean that Slurm cannot be reached, whatever was asked.
_AWAY = re.compile(r"configuration source|contact slurm controller", re.IGNORECASE)


class SlurmError(OrienteerError):
    """Slurm is not there, does not answer, or refuses."""


def is_here(program: str = "squeue") -> bool:
    """Whether a program of Slurm can be called here."""
    return shutil.which(program) is not None


def call(program: str, *arguments: str, given: str | None = None, patience_s: float = PATIENCE_S) -> str:
    """Call a program of Slurm and return its output.

    given : text for its standard input; patience_s : how long it may take.
    """
    if not is_here(program):
        raise SlurmError(
            f"there is no Slurm on this machine: the program '{program}' is missing.",
            "Log in to a machine of the cluster; --dry-run shows the script of a job anywhere.",
        )
    try:
        done = subprocess.run(
            [program, *arguments],
            input=given,
            capture_output=True,
            text=True,
            timeout=patience_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SlurmError(
            f"Slurm did not answer '{program}' within {patience_s:.0f} s.", "Try again in a few minutes."
        ) from None
    if done.returncode:
        raise SlurmError(
            f"{program}: {complaint(done.stderr or done.stdout)}",
            "Try the same by hand, or ask the staff of the cluster.",
        )
    return done.stdout


def complaint(text: str) -> str:
    """The error message of a program of Slurm, in one line and without the name of the program.

    >>> complaint("sbatch: error: invalid partition: gpux\\nsbatch: error: Batch job submission failed")
    'invalid partition: gpux; Batch job submission failed'
    """
    lines = [_COMPLAINT.sub("", line).strip() for line in text.splitlines()]
    return "; ".join(line for line in lines if line) or "failed without a message"


def submit(script: str, options: Sequence[str] = ()) -> str:
    """Submit a script by sbatch; returns the number of the job."""
    try:
        said = call("sbatch", "--parsable", *options, given=script)
    except SlurmError as error:
        if error.message.startswith("sbatch: "):
            words = error.message.removeprefix("sbatch: ")
            hint = "Change what is asked for under [cluster], and look at the script with --dry-run."
            if _AWAY.search(words):
                hint = "Log in to a machine of the cluster, or ask its staff whether Slurm is down."
            raise SlurmError(f"Slurm does not accept this job: {words}.".replace("..", "."), hint) from None
        raise
    number = said.strip().partition(";")[0]
    if not number.isdigit():
        raise SlurmError(
            f"sbatch printed '{said.strip():.200}', which is not the number of a job.",
            "Check by hand whether the job was accepted: squeue --me",
        )
    return number
