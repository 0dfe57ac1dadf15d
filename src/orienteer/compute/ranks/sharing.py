"""Cores and cards of a machine, shared out among the ranks that work on it."""

import os
import sys
from pathlib import Path

from orienteer.compute.machine import limit_cores, usable_cores
from orienteer.compute.ranks.comm import Comm

_CARDS = Path("/proc/driver/nvidia/gpus")
_VISIBLE = "CUDA_VISIBLE_DEVICES"


def share_machine(comm: Comm) -> int:
    """Let every rank of a machine use its part of the cores, and a card of its own where there are enough.

    What a launcher has given to one rank alone is its own.  Returns how many ranks share this one's card.
    """
    own = os.uname().nodename, frozenset(_cores()), tuple(_cards())
    everyone = comm.gather(own)
    here = [each for each in everyone if each[0] == own[0]]
    use_threads(threads_of(own[1], [cores for _, cores, _ in here]))
    before = [each for each in everyone[: comm.share(comm.size).start] if each[0] == own[0]]
    alike = [cards for _, _, cards in here].count(own[2])
    if not own[2]:
        return 1
    # A library that is loaded has its list of cards already.
    if "cupy" not in sys.modules:
        os.environ[_VISIBLE] = own[2][[cards for _, _, cards in before].count(own[2]) % len(own[2])]
    return -(-alike // len(own[2]))


def threads_of(own: frozenset[int], everyone: list[frozenset[int]]) -> int:
    """Threads of a rank whose cores are ``own``, where ``everyone`` on the machine has these cores.

    >>> threads_of(frozenset({0, 1, 2, 3}), [frozenset({0, 1, 2, 3})] * 2)
    2
    >>> threads_of(frozenset({0}), [frozenset({0}), frozenset({1})])
    1
    """
    shared_by = max(sum(core in cores for cores in everyone) for core in own)
    return max(1, len(own) // max(1, shared_by))


def use_threads(n_threads: int) -> None:
    """Parallel loops, matrix products and transforms of this process use so many threads at most."""
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
    """Names of the cards that this process may see, as its environment lists them."""
    if _VISIBLE in os.environ:
        return [name for name in os.environ[_VISIBLE].split(",") if name.strip()]
    return [str(number) for number, _ in enumerate(_CARDS.iterdir())] if _CARDS.is_dir() else []
