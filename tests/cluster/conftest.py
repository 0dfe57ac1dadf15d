"""A real Slurm on this machine, loopback only, started for the tests that ask for it and stopped after."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

# For daemons to come up; a loaded machine needs most of it.
PATIENCE_S = 120
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel", "srun")
CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
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
SlurmdTimeout=20
MinJobAge=600
ReturnToService=2
NodeName=node1 NodeHostname={host} NodeAddr=127.0.0.1 Port={node1} CPUs=2 State=UNKNOWN
NodeName=node2 NodeHostname={host} NodeAddr=127.0.0.1 Port={node2} CPUs=2 State=UNKNOWN
PartitionName=batch Nodes=ALL Default=YES MaxTime=4:00:00 PriorityTier=5 PreemptMode=OFF
PartitionName=guests Nodes=ALL MaxTime=4:00:00 PriorityTier=1 PreemptMode=REQUEUE GraceTime=10
PartitionName=urgent Nodes=ALL MaxTime=4:00:00 PriorityTier=9 PreemptMode=OFF
"""

# Starts a rank that counts to the number in the file "goal", one more every fifth of a second; it goes on
# where it was stopped, and leaves with 128 and the number of the signal, as runs do.
COUNTING = """#!/bin/bash
[ "$1" = run ] || exit 2
if [ -z "$SLURM_STEP_ID" ]; then
    srun --ntasks=1 --mpi=none "$0" "$@" &
    rank=$!
    trap 'kill -USR1 $rank' USR1
    trap 'kill -TERM $rank' TERM
    while kill -0 $rank 2>/dev/null; do wait $rank; done
    wait $rank
    exit $?
fi
folder=${2%.toml}
trap 'echo stopped by a notice; exit 138' USR1
trap 'echo stopped by Slurm; exit 143' TERM
for argument in "$@"; do case "$argument" in run.out=*) folder=${argument#run.out=} ;; esac; done
mkdir -p "$folder"
goal=$(cat goal)
number=$(cat "$folder/number" 2>/dev/null || echo 0)
echo "$* goes on from $number"
while [ "$number" -lt "$goal" ]; do
    sleep 0.2 & wait $!
    number=$((number + 1)); echo "$number" > "$folder/number"
done
echo "done"
"""
SITE = """#!/bin/bash
#: about = "The machine of the tests."
{{options}}
{{environment}}
export PATH={programs}:"$PATH"
{{work}}
"""


class Slurm:
    """The scheduler of the tests: how to ask it, and how to wait for it."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.environment = environment
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, *command: str) -> None:
        """Start a daemon."""
        with (self.folder / f"{name}.out").open("ab") as said:
            self._daemons[name] = subprocess.Popen(
                command, env=self.environment, stdout=said, stderr=subprocess.STDOUT, start_new_session=True
            )

    def start_node(self, name: str) -> None:
        """Let a node take part."""
        self.start(name, "slurmd", "-D", "-N", name)

    def lose_node(self, name: str) -> None:
        """Let a node die without a word."""
        self._daemons[name].kill()
        self._daemons[name].wait()

    def ended(self) -> list[str]:
        """Daemons that are not at work any more."""
        return [name for name, daemon in self._daemons.items() if daemon.poll() is not None]

    def stop(self) -> None:
        """End all daemons, the last one first."""
        for daemon in reversed(self._daemons.values()):
            daemon.terminate()
            try:
                daemon.wait(15)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def call(self, *command: object) -> str:
        """What a program of Slurm says."""
        done = subprocess.run([str(part) for part in command], env=self.environment,
                              capture_output=True, text=True, timeout=60, check=False)  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout.strip()

    def send_guests_away(self) -> None:
        """Have all nodes for a moment for something urgent."""
        urgent = self.call(
            "sbatch", "--parsable", "--partition=urgent", "--nodes=2", "--exclusive", "--output=/dev/null",
            "--wrap=sleep 1",
        )  # fmt: skip
        self.wait_for(urgent, "COMPLETED")

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


def reserved_port() -> socket.socket:
    """A port of this machine that nobody else gets while the socket is open; a daemon can listen there."""
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved


def missing() -> str:
    """Why there can be no Slurm here; empty when there can."""
    places = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
    absent = [program for program in PROGRAMS if shutil.which(program, path=places) is None]
    if absent:
        return f"Slurm is not installed here: no {', '.join(absent)} (Debian: slurm-wlm munge)"
    return "" if os.geteuid() == 0 else "the daemons of Slurm need root"


@pytest.fixture(scope="session")
def slurm() -> Iterator[Slurm]:
    """A controller, two nodes of two pretended cores each and three partitions."""
    if reason := missing():
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="orienteer-slurm-"))
    folder.chmod(0o755)  # munged wants its socket to be within everybody's reach
    for name in ("state", "spool-node1", "spool-node2"):
        (folder / name).mkdir()
    configuration = folder / "slurm.conf"
    host = socket.gethostname().partition(".")[0]
    reserved = {name: reserved_port() for name in ("controller", "node1", "node2")}
    ports = {name: port.getsockname()[1] for name, port in reserved.items()}
    configuration.write_text(CONFIGURATION.format(host=host, folder=folder, **ports))
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SLURM")}
    environment |= {
        "SLURM_CONF": str(configuration),
        "PATH": f"{environment['PATH']}:/usr/sbin:/usr/local/sbin",
    }
    door, names = folder / "munge.socket", ("key", "pid", "log", "seed")
    munge_files = [f"--{name}-file={folder / 'munge'}.{name}" for name in names]
    started = Slurm(folder, environment)
    try:
        started.start("munged", "munged", "--foreground", "--force", f"--socket={door}", *munge_files)
        is_up = _comes(started, door.exists)
        if is_up:
            started.start("slurmctld", "slurmctld", "-D")
            for name in ("node1", "node2"):
                started.start_node(name)
            is_up = _comes(started, lambda: _is_up(started))
        if not is_up:
            _skip_loudly(_why_not_up(started))
        yield started
        subprocess.run(["scancel", "--user=root"], env=environment, check=False, timeout=60)
        time.sleep(1)
    finally:
        started.stop()
        for port in reserved.values():
            port.close()
        shutil.rmtree(folder, ignore_errors=True)


def _comes(slurm: Slurm, is_there: Callable[[], bool]) -> bool:
    """Whether it is there in the end; nobody waits for daemons that have ended."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end and not slurm.ended():
        if is_there():
            return True
        time.sleep(0.3)
    return False


def _is_up(slurm: Slurm) -> bool:
    question = ["sinfo", "--noheader", "--partition=batch", "--format=%T"]
    asked = subprocess.run(question, env=slurm.environment, capture_output=True, text=True, check=False)
    return asked.stdout.split() == ["idle"]  # both nodes, in one line


def _why_not_up(slurm: Slurm) -> str:
    """One sentence for people, and the last words of the daemons."""
    what = f"{', '.join(slurm.ended())} ended at once" if slurm.ended() else f"not ready after {PATIENCE_S} s"
    return f"Slurm is installed and does not start here: {what}. {_last_words(slurm.folder)}"


def _skip_loudly(reason: str) -> None:
    """Skip, and say so at the end of all tests, too: nobody shall take this for a Slurm that was tested."""
    warnings.warn(reason, stacklevel=2)
    pytest.skip(reason)


def _last_words(folder: Path) -> str:
    logs = [folder / "slurmctld.log", folder / "slurmd-node1.log", folder / "munged.out"]
    return " ".join(log.read_text(errors="replace")[-300:] for log in logs if log.exists())


class Desk:
    """A folder with runs, and the command line of a user who works there."""

    def __init__(self, folder: Path, slurm: Slurm) -> None:
        self.folder = folder
        self.slurm = slurm
        programs = folder / "programs"
        programs.mkdir()
        (programs / "orienteer").write_text(COUNTING)
        (programs / "orienteer").chmod(0o755)
        (folder / "site.sh").write_text(SITE.replace("{programs}", str(programs)))
        (folder / "frames.h5").write_bytes(b"looked at by nobody")
        self.environment = {**slurm.environment, "XDG_CACHE_HOME": str(folder / "cache"), "COLUMNS": "200"}

    def run_file(self, name: str, goal: int) -> str:
        (self.folder / "goal").write_text(str(goal))
        (self.folder / f"{name}.toml").write_text(
            '[run]\ndata = "frames.h5"\n\n[cluster]\nsite = "./site.sh"\ntime = "10min"\n'
        )
        return f"{name}.toml"

    def call(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "orienteer", *map(str, arguments)]
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def submit(self, *arguments: object) -> list[str]:
        """The numbers of the jobs."""
        done = self.call("submit", *arguments, "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        return list(json.loads(done.stdout)["jobs"])

    def status(self, *arguments: object) -> Any:
        """What is told of the runs, with a question to Slurm that is new."""
        for answer in (self.folder / "cache").rglob("queue-*.json"):
            answer.unlink()
        done = self.call("status", *arguments, "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)["runs"]

    def number(self, run: str) -> int:
        path = self.folder / run / "number"
        return int(path.read_text() or 0) if path.exists() else 0

    def come_nearer(self, run: str) -> int:
        """A goal that the next job of a run can reach; the one at work has read another."""
        goal = self.number(run) + 50
        (self.folder / "goal").write_text(str(goal))
        return goal

    def log(self, run: str, job: str) -> str:
        return (self.folder / run / "slurm" / f"{job}.log").read_text()

    @staticmethod
    def wait_until(found: Callable[[], T], what: str) -> T:
        return wait_until(found, what)


@pytest.fixture
def desk(tmp_path: Path, slurm: Slurm) -> Desk:
    return Desk(tmp_path, slurm)
