"""The machine we run on: processor, cores and memory."""

import os
import platform
from pathlib import Path


def processor_name() -> str:
    """The name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine()
    )


_limits: list[int] = []


def usable_cores() -> int:
    """Cores that this process may use, which a batch system or the ranks beside it may have limited."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min([cores, *_limits])


def limit_cores(n_cores: int) -> None:
    """Limit :func:`usable_cores` to this number, because others work beside this process."""
    _limits[:] = [n_cores]


def memory_GiB() -> tuple[float, float]:
    """Memory in all, and free for new programs, in GiB."""
    page = os.sysconf("SC_PAGE_SIZE") / 2**30
    total = os.sysconf("SC_PHYS_PAGES") * page
    try:
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        return total, int(lines["MemAvailable"].split()[0]) / 2**20
    except (OSError, KeyError, ValueError):
        return total, total
