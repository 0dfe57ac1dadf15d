"""The script of a batch job: the template of the site, filled in with sbatch options and commands."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from orienteer.cluster.duration import parse_duration, slurm_time
from orienteer.cluster.job import Job
from orienteer.cluster.settings import ClusterSettings
from orienteer.cluster.site import Site
from orienteer.cluster.template import fill

# Runs a command once on each node, such as to unpack the archive of an environment.
_ON_EACH_NODE = 'srun --mpi=none --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1'


def job_script(job: Job, site: Site, settings: ClusterSettings, made_by: str = "") -> str:
    """The whole script.

    settings : of the user and the site together; made_by : the command that makes the script again.
    """
    script = fill(
        site.text,
        {
            "options": "\n".join(f"#SBATCH {option}" for option in _left_to_us(job, site, settings)),
            "environment": "\n".join(environment_lines(settings)),
            "work": "\n".join(work_lines(job, settings)),
            "name": job.name,
            "nodes": str(settings.nodes),
            "ranks_per_node": str(settings.n_ranks_per_node),
            "ranks": str(settings.nodes * settings.n_ranks_per_node),
            "gpus_per_node": str(settings.gpus_per_node or ""),
            "cores_per_rank": str(settings.cores_per_rank or ""),
            "folder": shlex.quote(str(job.folder)),
        },
    )
    shell, _, rest = script.partition("\n")
    return f"{shell}\n# Made by: {made_by}\n{rest}" if made_by else script


def _left_to_us(job: Job, site: Site, settings: ClusterSettings) -> list[str]:
    """The options of sbatch; if the template itself asks for GPUs, without their number."""
    options = sbatch_options(job, settings)
    if not any("{{gpus_per_node}}" in line for line in site.text.splitlines() if line.startswith("#SBATCH")):
        return options
    return [option for option in options if not option.startswith("--gpus-per-node=")]


def sbatch_options(job: Job, settings: ClusterSettings) -> list[str]:
    """The options of sbatch; further options of the site and the user replace others of the same name."""
    tasks = f"0-{len(job.works) - 1}" + (f"%{settings.at_once}" if settings.at_once else "")
    named = {
        "job-name": job.name,
        "nodes": settings.nodes,
        "ntasks-per-node": settings.n_ranks_per_node,
        "cpus-per-task": settings.cores_per_rank,
        "gpus-per-node": settings.gpus_per_node,
        "mem": f"{settings.memory_GiB_per_node * 1024:.0f}M" if settings.memory_GiB_per_node else "",
        "time": slurm_time(parse_duration(settings.time)) if settings.time else "",
        "partition": settings.partition,
        "account": settings.account,
        "qos": settings.qos,
        "reservation": settings.reservation,
        "constraint": settings.constraint,
        "array": tasks if job.is_array else "",
        "chdir": _text(str(job.folder)),
        "output": _text(str(job.log_pattern)),
        "open-mode": "append",
        "signal": f"B:USR1@{settings.notice_s}",
    }
    options = [f"--{name}={value}" for name, value in named.items() if value]
    if settings.exclusive:
        options.append("--exclusive")
    # If a node dies, Slurm queues the job again, and the run resumes.
    options.append("--requeue")
    for further in (*(settings.preemptible_options if settings.preemptible else ()), *settings.options):
        named_too = further.partition("=")[0].partition(" ")[0]
        options = [*(option for option in options if option.partition("=")[0] != named_too), _text(further)]
    return options


def environment_lines(settings: ClusterSettings) -> list[str]:
    """Lines that make the command available, and srun start the ranks as asked for."""
    lines = _packed(settings) if settings.environment else _this_environment()
    if settings.mpi:
        lines.append(f"export SLURM_MPI_TYPE={_quoted(settings.mpi)}")
    if settings.cores_per_rank:
        lines.append(f"export SRUN_CPUS_PER_TASK={settings.cores_per_rank}")
    return lines


def _this_environment() -> list[str]:
    programs = Path(sys.prefix) / "bin"
    return ["# The environment from which the job was submitted.", f'export PATH={_quoted(programs)}:"$PATH"']


def _packed(settings: ClusterSettings) -> list[str]:
    archive = Path(settings.environment)
    ending = archive.name[archive.name.index(".tar") :]
    # If nodes share the folder, only one of them unpacks the archive, whole or not at all.
    unpack = (
        'exec 9>"$1.lock"; flock 9; [ -d "$1" ] || { rm -rf "$1.part" && mkdir "$1.part" && '
        f'tar -xf "$1{ending}" -C "$1.part" && mv "$1.part" "$1"; }}'
    )
    return [
        f"# The environment in {archive.name}, sent to the disk of each node and removed at the end.",
        f'environment={_quoted(settings.node_folder)}/orienteer-"$SLURM_JOB_ID"',
        f'sbcast --force {_quoted(archive.absolute())} "$environment{ending}" || exit 1',
        f"{_ON_EACH_NODE} bash -c '{unpack}' - \"$environment\" || exit 1",
        f'trap \'{_ON_EACH_NODE} rm -rf "$environment" "$environment"{{.lock,.part,{ending}}}\' EXIT',
        'export PATH="$environment/bin:$PATH"',
    ]


def work_lines(job: Job, settings: ClusterSettings) -> list[str]:
    """The command, with lines that pass on the signals of Slurm and act on its exit status."""
    lines = [
        "# Slurm's signals go to the command, which saves the run and exits; the next job goes on there.",
        *_commands(job),
        "command=$!",
        "trap 'kill -USR1 \"$command\" 2>/dev/null' USR1",
        "trap 'kill -TERM \"$command\" 2>/dev/null' TERM",
        'while kill -0 "$command" 2>/dev/null; do wait "$command"; done',
        'wait "$command"; status=$?',
    ]
    if settings.preemptible:
        lines += [
            "# Stopped before its end, but not cancelled: queue again.",
            "trap - USR1 TERM",
            'state=$(squeue --noheader --jobs="$SLURM_JOB_ID" --format=%T)',
            'if [ "$status" -gt 128 ] && [ "$state" = RUNNING ]; then',
            '    scontrol requeue "$SLURM_JOB_ID" && sleep 300   # which Slurm cuts short',
            "fi",
        ]
    return [*lines, 'exit "$status"']


def _commands(job: Job) -> list[str]:
    if not job.is_array:
        return [f"{_command(job.works[0].arguments)} &"]
    return [
        'case "$SLURM_ARRAY_TASK_ID" in',
        *(f"    {task}) {_command(work.arguments)} & ;;" for task, work in enumerate(job.works)),
        "esac",
    ]


def _command(arguments: Sequence[str]) -> str:
    return shlex.join(["orienteer", *arguments])


def _quoted(path: Path | str) -> str:
    return shlex.quote(str(path))


def _text(text: str) -> str:
    """A text as sbatch reads it in a script: quoted if it has blanks, quotes or #."""
    return shlex.quote(text) if any(sign.isspace() or sign in "'\"#" for sign in text) else text
