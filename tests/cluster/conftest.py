"""A real Slurm on this machine, loopback only, started for the tests that ask for it and stopped after them."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

T = TypeVar("T")

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel", "srun")
CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={daemon}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1,batch_sched_delay=0
SlurmdParameters=config_overrides
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobRequeue=1
KillWait=5
MinJobAge=600
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=batch Nodes={host} Default=YES MaxTime=4:00:00 PriorityTier=5 PreemptMode=OFF
PartitionName=guests Nodes={host} MaxTime=4:00:00 PriorityTier=1 PreemptMode=REQUEUE GraceTime=10
PartitionName=urgent Nodes={host} MaxTime=4:00:00 PriorityTier=9 PreemptMode=OFF
"""


class Slurm:
    """The scheduler of the tests: how to ask it, and how to wait for it."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.environment = environment

    def call(self, *command: object) -> str:
        """What a program of Slurm says."""
        done = subprocess.run([str(part) for part in command], env=self.environment,
                              capture_output=True, text=True, timeout=60, check=False)  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout.strip()

    def state(self, job: str) -> str:
        """The state of a job in one word, such as PENDING."""
        found = self.call("squeue", "--noheader", "--states=all", "--array", f"--jobs={job}", "--format=%T")
        return found.splitlines()[0].strip() if found else "GONE"

    def wait_for(self, job: str, *states: str, seconds: float = 120) -> str:
        """Wait until the job is in one of the states, and say in which."""
        return wait_until(
            lambda: (now := self.state(job)) in states and now, f"{job} to be {states}", seconds
        )


def wait_until(found: Callable[[], T], what: str, seconds: float = 120) -> T:
    """Ask until the answer is true."""
    end = time.monotonic() + seconds
    while not (answer := found()):
        assert time.monotonic() < end, f"waited {seconds} s for {what}"
        time.sleep(0.2)
    return answer


def free_port() -> int:
    """A port of this machine that nobody listens at."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def missing() -> str:
    """Why there can be no Slurm here; empty when there can."""
    places = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
    absent = [program for program in PROGRAMS if shutil.which(program, path=places) is None]
    if absent:
        return f"Slurm is not installed here: no {', '.join(absent)} (Debian: slurm-wlm munge)"
    return "" if os.geteuid() == 0 else "the daemons of Slurm need root"


@pytest.fixture(scope="session")
def slurm() -> Iterator[Slurm]:
    """A controller, one node of four pretended cores and three partitions."""
    if reason := missing():
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="orienteer-slurm-"))
    folder.chmod(0o755)  # munged wants its socket to be within everybody's reach
    for name in ("state", "spool"):
        (folder / name).mkdir()
    configuration = folder / "slurm.conf"
    configuration.write_text(
        CONFIGURATION.format(
            host=socket.gethostname().partition(".")[0],
            folder=folder,
            controller=free_port(),
            daemon=free_port(),
        )
    )
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SLURM")}
    environment |= {
        "SLURM_CONF": str(configuration),
        "PATH": f"{environment['PATH']}:/usr/sbin:/usr/local/sbin",
    }
    socket_, names = folder / "munge.socket", ("key", "pid", "log", "seed")
    munged = ["munged", "--foreground", "--force", f"--socket={socket_}",
              *(f"--{name}-file={folder / 'munge'}.{name}" for name in names)]  # fmt: skip
    daemons: list[subprocess.Popen[bytes]] = []
    started = Slurm(folder, environment)
    try:
        for command in (munged, ["slurmctld", "-D"], ["slurmd", "-D"]):
            with (folder / f"{command[0]}.out").open("wb") as said:
                daemons.append(
                    subprocess.Popen(
                        command,
                        env=environment,
                        stdout=said,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                    )
                )
            if command is munged:
                wait_until(socket_.exists, "munged", 30)
        if not _is_up(started):
            pytest.skip(f"Slurm does not start here: {_last_words(folder)}")
        yield started
        subprocess.run(["scancel", "--user=root"], env=environment, check=False, timeout=60)
        time.sleep(1)
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
        for daemon in reversed(daemons):
            try:
                daemon.wait(15)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _is_up(slurm: Slurm) -> bool:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        asked = subprocess.run(["sinfo", "--noheader", "--partition=batch", "--format=%T"],
                               env=slurm.environment, capture_output=True, text=True, check=False)  # fmt: skip
        if asked.stdout.strip().startswith("idle"):
            return True
        time.sleep(0.3)
    return False


def _last_words(folder: Path) -> str:
    logs = [folder / "slurmctld.log", folder / "slurmd.log", folder / "munged.out"]
    return " ".join(log.read_text(errors="replace")[-300:] for log in logs if log.exists())
