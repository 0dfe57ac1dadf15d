"""Slurm's programs: called with care, and what they complain about in their own words."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence

from orienteer.errors import OrienteerError

PATIENCE_S = 60.0
_COMPLAINT = re.compile(r"^(?:\w+: )?(?:error|fatal|warning): ", re.MULTILINE)

# What is said where no Slurm answers, whatever is asked for.
_AWAY = re.compile(r"configuration source|contact slurm controller", re.IGNORECASE)


class SlurmError(OrienteerError):
    """Slurm is not there, does not answer, or refuses."""


def is_here(program: str = "squeue") -> bool:
    """Whether a program of Slurm can be called here."""
    return shutil.which(program) is not None


def call(program: str, *arguments: str, given: str | None = None, patience_s: float = PATIENCE_S) -> str:
    """What a program of Slurm prints.

    given : what it reads from its standard input; patience_s : how long it may take.
    """
    if not is_here(program):
        raise SlurmError(
            f"there is no Slurm on this machine: no program '{program}'.",
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
            "Try the same by hand, or ask who runs Slurm here.",
        )
    return done.stdout


def complaint(text: str) -> str:
    """What a program of Slurm has to say, as one line without its own name.

    >>> complaint("sbatch: error: invalid partition: gpux\\nsbatch: error: Batch job submission failed")
    'invalid partition: gpux; Batch job submission failed'
    """
    lines = [_COMPLAINT.sub("", line).strip() for line in text.splitlines()]
    return "; ".join(line for line in lines if line) or "failed without a word"


def submit(script: str, options: Sequence[str] = ()) -> str:
    """Hand a script to sbatch; the number of the job."""
    try:
        said = call("sbatch", "--parsable", *options, given=script)
    except SlurmError as error:
        if error.message.startswith("sbatch: "):
            words = error.message.removeprefix("sbatch: ")
            hint = "Change what is asked for under [cluster], and look at the script with --dry-run."
            if _AWAY.search(words):
                hint = "Log in to a machine of the cluster, or ask who runs Slurm here whether it is down."
            raise SlurmError(f"Slurm does not take this job: {words}.".replace("..", "."), hint) from None
        raise
    number = said.strip().partition(";")[0]
    if not number.isdigit():
        raise SlurmError(
            f"sbatch has said '{said.strip():.200}', which is no number of a job.",
            "See by hand whether it was taken: squeue --me",
        )
    return number
