"""The ranks that this process was started with."""

from functools import cache

from orienteer.compute.ranks.comm import SERIAL, Comm
from orienteer.compute.ranks.launchers import is_launched, load_mpi
from orienteer.compute.ranks.sharing import share_machine


@cache
def world() -> Comm:
    """All ranks, or ``SERIAL`` if only one was started.  The first call divides cores and GPUs."""
    if not is_launched():
        return SERIAL
    MPI = load_mpi()
    if MPI.COMM_WORLD.Get_size() == 1:
        return SERIAL
    from orienteer.compute.ranks.mpi import Mpi

    comm = Mpi(MPI.COMM_WORLD.Dup())
    comm.n_per_card = share_machine(comm)
    return comm
