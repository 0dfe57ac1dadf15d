"""Start the ranks of a run and wait for them: by srun inside a Slurm job, else by mpiexec.

When a rank is lost, launchers print lines that do not help a user.  They are kept from the terminal, and the
rank that was lost is read from them.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO, Any

from orienteer.compute.extras import how_to_install
from orienteer.errors import OrienteerError
from orienteer.run.roll_call import RollCall

# MPICH: a frame of "=" around the lost process, remarks in square brackets, the notice of an abort.
_NOISE = re.compile(
    r"=+\s*$|=   |YOUR APPLICATION TERMINATED|This typically refers to|Please see the FAQ page"
    r"|Abort\(\d+\) on node|\[(mpiexec|proxy)[@:]|\[\d+\] application called MPI_Abort|srun: "
    r"|slurmstepd: error: (\*\*\*|mpi/)|In: PMI_Abort"
)
_LOST_PROCESS = re.compile(r"=   PID (\d+) RUNNING AT (\S+)")
_LOST_STATUS = re.compile(r"=   EXIT CODE: (\d+)")
_LOST_TASK = re.compile(r"srun: error: (\S+): tasks? ([\d,-]+): (.+)")
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP)


@dataclass(frozen=True)
class Lost:
    """A rank that has ended without any message.

    rank : None if only its process is known; pid : None if only its rank is known.
    """

    host: str
    rank: int | None
    pid: int | None
    what: str


@dataclass
class Ending:
    """How a job has ended.

    status : exit status; signal : that this process has received and passed on, 0: none.
    lost : ranks that the launcher has named; said : lines of the launcher, if nothing else explains the end.
    n_lines : number of lines that the ranks themselves have printed.
    first : the rank that ended before all others, with its host; None if that is not known.
    """

    status: int = 0
    signal: int = 0
    lost: list[Lost] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    n_lines: int = 0
    first: tuple[int, str] | None = None


def launch(
    program: Sequence[str], n_ranks: int, excluded: Sequence[str] = (), output: IO[str] | None = None
) -> Ending:
    """Run a program with its arguments on this many ranks, and wait for them.

    excluded : nodes of a Slurm job on which nothing is to be started.
    output : where the standard output of the ranks goes; None: to that of this process.
    """
    command = [*launcher(n_ranks, excluded), *program] if n_ranks > 1 else list(program)
    ending = Ending()
    pipe = subprocess.PIPE if n_ranks > 1 else None
    # A process group of its own, so that Ctrl-C reaches it only from here, and not from the terminal as well.
    with RollCall() as roll:
        child = subprocess.Popen(
            command,
            stdout=pipe if output is None else subprocess.PIPE,
            stderr=pipe,
            start_new_session=True,
            env={**os.environ, **roll.variables},
        )
        with _passing_on(child, ending):
            readers = [
                threading.Thread(target=_sift, args=(came, goes, ending), daemon=True)
                for came, goes in ((child.stdout, output or sys.stdout), (child.stderr, sys.stderr))
                if came is not None
            ]
            for reader in readers:
                reader.start()
            ending.status = child.wait()
            for reader in readers:
                reader.join(10)
    if roll.ended:
        ending.first = roll.ended[0], roll.members[roll.ended[0]][0]
    if ending.status < 0:
        what = f"was ended by signal {-ending.status}"
        ending.lost.append(Lost(os.uname().nodename, 0 if n_ranks == 1 else None, child.pid, what))
        ending.status = 128 - ending.status
    return ending


def launcher(n_ranks: int, excluded: Sequence[str] = ()) -> list[str]:
    """The command to put before a program to start it on this many ranks."""
    if in_slurm():
        left_out = [f"--exclude={','.join(excluded)}"] if excluded else []
        return ["srun", f"--ntasks={n_ranks}", "--kill-on-bad-exit=1", *left_out]
    beside_python = Path(sys.executable).with_name("mpiexec")
    found = str(beside_python) if beside_python.exists() else shutil.which("mpiexec")
    if found is None:
        raise OrienteerError(
            f"{n_ranks} ranks are asked for, but there is no mpiexec.",
            f"Install an MPI: {how_to_install('mpi')}; or give --ranks 1.",
        )
    return [found, "-n", str(n_ranks)]


def in_slurm() -> bool:
    """Whether this process is in a Slurm job that can start ranks."""
    return "SLURM_JOB_ID" in os.environ and shutil.which("srun") is not None


@contextmanager
def _passing_on(child: subprocess.Popen[bytes], ending: Ending) -> Iterator[None]:
    """Inside the block, signals are passed on to the child, which handles them."""

    def pass_on(number: int, _: FrameType | None) -> None:
        ending.signal = number
        # mpiexec would die of a SIGHUP and leave its ranks behind.
        child.send_signal(signal.SIGTERM if number == signal.SIGHUP else number)

    before = {number: signal.signal(number, pass_on) for number in _FORWARDED}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _sift(came: IO[bytes], goes: Any, ending: Ending) -> None:
    """Pass lines on, except those of the launcher, from which lost ranks are read."""
    blank = ""
    for raw in came:
        line = raw.decode(errors="replace")
        if not line.strip():  # MPICH begins with an empty line, and so do tables
            blank += line
            continue
        if _NOISE.match(line):
            blank = ""
            ending.said.append(line.strip())
            _note_lost(line, ending)
            continue
        ending.n_lines += 1
        goes.write(blank + line)
        goes.flush()
        blank = ""


def _note_lost(line: str, ending: Ending) -> None:
    if process := _LOST_PROCESS.match(line):
        ending.lost.append(Lost(process[2], None, int(process[1]), "has ended"))
    elif (status := _LOST_STATUS.match(line)) and ending.lost:
        last = ending.lost.pop()
        ending.lost.append(Lost(last.host, last.rank, last.pid, end_in_words(int(status[1]))))
    elif task := _LOST_TASK.match(line):
        first = int(re.split(r"[,-]", task[2])[0])
        ending.lost.append(Lost(task[1], first, None, f"has ended: {task[3].strip()}"))


def end_in_words(status: int) -> str:
    """What happened to a process, from its exit status.

    >>> end_in_words(9), end_in_words(3)
    ('was killed (signal 9)', 'has left with status 3')
    """
    number = status - 128 if status > 128 else status
    if number == signal.SIGKILL:
        return f"was killed (signal {number})"
    if number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE):
        return f"has crashed (signal {number})"
    return f"has left with status {status}"
