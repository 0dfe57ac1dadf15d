"""The limits of the partitions of the cluster, read once before a job is submitted."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from orienteer.cluster.duration import parse_duration, parse_slurm_time, slurm_time
from orienteer.cluster.settings import ClusterSettings
from orienteer.cluster.slurm import SlurmError, call
from orienteer.errors import SettingsError


@dataclass(frozen=True)
class Partition:
    """A partition; is_up : whether jobs start there; longest_s : time limit, None if there is none."""

    name: str
    is_default: bool
    is_up: bool
    n_nodes: int
    longest_s: int | None


def read_partitions() -> list[Partition]:
    """Every partition that Slurm reports; an empty list if it does not answer."""
    try:
        told = call("sinfo", "--noheader", "--summarize", "--format=%P|%a|%D|%l", patience_s=20)
    except SlurmError:  # sbatch itself will report what is wrong
        return []
    found = []
    for line in told.splitlines():
        name, up, nodes, longest = (part.strip() for part in line.split("|"))
        plain = name.rstrip("*")
        n_nodes = int(nodes) if nodes.isdigit() else 0
        found.append(Partition(plain, plain != name, up == "up", n_nodes, parse_slurm_time(longest)))
    return found


def check_limits(settings: ClusterSettings, partitions: list[Partition]) -> None:
    """Refuse a job for more nodes or time than any of its partitions can give."""
    if not partitions:
        return
    names = [name for name in settings.partition.split(",") if name]
    known = {partition.name: partition for partition in partitions}
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
            hint = f"Did you mean '{close[0]}'?" if close else f"There are: {', '.join(sorted(known))}."
            raise SettingsError(f"--partition {name}: the cluster has no such partition.", hint)
    usable = [known[name] for name in names] or [part for part in partitions if part.is_default]
    if not usable:  # it is not known which partition Slurm will choose
        return
    if not any(part.is_up for part in usable):
        raise _all_down(usable, partitions)
    usable = [part for part in usable if part.is_up]
    said = " or ".join(part.name for part in usable)
    most = max(part.n_nodes for part in usable)
    if settings.nodes > most:
        raise SettingsError(f"--nodes {settings.nodes}: {said} has {most}.", f"Give at most --nodes {most}.")
    longest = [part.longest_s for part in usable if part.longest_s is not None]
    if settings.time and len(longest) == len(usable) and parse_duration(settings.time) > max(longest):
        limit = slurm_time(max(longest))
        raise SettingsError(
            f"--time {settings.time}: {said} gives at most {limit} to a job.",
            f"Give --time {limit} and as many --chain jobs as the run needs.",
        )


def _all_down(wanted: list[Partition], partitions: list[Partition]) -> SettingsError:
    up = sorted(part.name for part in partitions if part.is_up)
    said = f"--partition {','.join(part.name for part in wanted)}"
    why = "it is down, and starts no job now" if len(wanted) == 1 else "they are down, and start no job now"
    return SettingsError(
        f"{said}: {why}.",
        f"These are up: {', '.join(up)}." if up else "No other is up either: ask the staff of the cluster.",
    )
