"""The ranks that this process was started with, and the cores that each of them may use."""

import os
import sys
from functools import cache

from orienteer.compute.machine import limit_cores, usable_cores
from orienteer.compute.ranks.comm import SERIAL, Comm
from orienteer.errors import OrienteerError


def is_launched() -> bool:
    """Whether a launcher has started this process as one of several ranks; MPI itself is not asked."""
    sizes = (os.environ.get(name, "") for name in ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE"))
    return any(size.isdigit() and int(size) > 1 for size in sizes) or "PMIX_RANK" in os.environ


@cache
def world() -> Comm:
    """All ranks; alone, where nobody has started several.  The first call divides the cores among them."""
    if not is_launched():
        return SERIAL
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise OrienteerError(
            "several ranks were started, but they cannot speak to each other: mpi4py is not installed.",
            'Install it: pip install "orienteer[mpi]".',
        ) from error
    if MPI.COMM_WORLD.Get_size() == 1:
        return SERIAL
    from orienteer.compute.ranks.mpi import Mpi

    comm = Mpi(MPI.COMM_WORLD.Dup())
    share_cores(comm)
    return comm


def share_cores(comm: Comm) -> int:
    """Let every rank of a machine use its part of the cores, and no more; returns how many that are.

    Cores that a launcher has given to one rank alone are its own.
    """
    own = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(usable_cores()))
    others = [cores for name, cores in comm.gather((os.uname().nodename, own)) if name == os.uname().nodename]
    shared_by = max(1, max(sum(core in cores for cores in others) for core in own))
    n_threads = max(1, len(own) // shared_by)
    use_threads(n_threads)
    return n_threads


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
