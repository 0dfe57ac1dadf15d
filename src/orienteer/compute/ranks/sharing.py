"""Cores and GPUs of a machine, divided among the ranks that work on it."""

import os
import sys
from pathlib import Path

from orienteer.compute.machine import limit_cores, usable_cores
from orienteer.compute.ranks.comm import Comm

_CARDS = Path("/proc/driver/nvidia/gpus")
_VISIBLE = "CUDA_VISIBLE_DEVICES"


def share_machine(comm: Comm) -> int:
    """Give every rank of a machine its part of the cores, and a GPU of its own if there are enough.

    A rank keeps what a launcher has given to it alone.  Returns how many ranks share the GPU of this one.
    """
    own = os.uname().nodename, frozenset(_cores()), tuple(_cards())
    everyone = comm.gather(own)
    here = [each for each in everyone if each[0] == own[0]]
    use_threads(threads_of(own[1], [cores for _, cores, _ in here]))
    before = [each for each in everyone[: comm.share(comm.size).start] if each[0] == own[0]]
    alike = [cards for _, _, cards in here].count(own[2])
    if not own[2]:
        return 1
    # CuPy has read the list of GPUs already if it is loaded.
    if "cupy" not in sys.modules:
        os.environ[_VISIBLE] = own[2][[cards for _, _, cards in before].count(own[2]) % len(own[2])]
    return -(-alike // len(own[2]))


def threads_of(own: frozenset[int], everyone: list[frozenset[int]]) -> int:
    """Threads of a rank whose cores are ``own``; ``everyone`` are the cores of each rank on the machine.

    >>> threads_of(frozenset({0, 1, 2, 3}), [frozenset({0, 1, 2, 3})] * 2)
    2
    >>> threads_of(frozenset({0}), [frozenset({0}), frozenset({1})])
    1
    """
    shared_by = max(sum(core in cores for cores in everyone) for core in own)
    return max(1, len(own) // max(1, shared_by))


def use_threads(n_threads: int) -> None:
    """Limit parallel loops, matrix products and transforms of this process to this many threads."""
    limit_cores(n_threads)
    # For libraries that are not loaded yet, and those that are.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(n_threads)
    if "numba" in sys.modules:
        import numba

        numba.set_num_threads(min(n_threads, numba.get_num_threads()))
    else:
        os.environ["NUMBA_NUM_THREADS"] = str(n_threads)
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return
    threadpool_limits(n_threads)


def _cores() -> set[int]:
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(usable_cores()))


def _cards() -> list[str]:
    """Names of the GPUs that this process may see, as its environment lists them."""
    if _VISIBLE in os.environ:
        return [name for name in os.environ[_VISIBLE].split(",") if name.strip()]
    return [str(number) for number, _ in enumerate(_CARDS.iterdir())] if _CARDS.is_dir() else []
