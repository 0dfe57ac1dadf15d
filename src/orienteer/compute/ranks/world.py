"""The ranks that this process was started with."""

import os
from functools import cache

from orienteer.compute.ranks.comm import SERIAL, Comm
from orienteer.compute.ranks.sharing import share_machine
from orienteer.errors import OrienteerError


def is_launched() -> bool:
    """Whether a launcher has started this process as one of several ranks; MPI itself is not asked."""
    sizes = (os.environ.get(name, "") for name in ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE"))
    return any(size.isdigit() and int(size) > 1 for size in sizes) or "PMIX_RANK" in os.environ


@cache
def world() -> Comm:
    """All ranks; alone, where nobody has started several.  The first call divides cores and cards."""
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
    comm.n_per_card = share_machine(comm)
    return comm
