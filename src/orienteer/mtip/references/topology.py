"""Ranks and their nodes, as MPI reports them or as a test sets them."""

from dataclasses import dataclass
from typing import Any

from orienteer.compute.ranks.comm import Comm
from orienteer.compute.ranks.mpi import Mpi
from orienteer.mtip.references.order import Nodes, groups_of_nodes


@dataclass(frozen=True, eq=False)
class Ranks:
    """The ranks that keep references together.

    comm : their mpi4py communicator.
    nodes : its ranks, node by node.
    """

    comm: Any
    nodes: Nodes

    @classmethod
    def of(cls, comm: Any, ranks_per_node: int = 0) -> "Ranks":
        """All ranks of a communicator.

        ranks_per_node : pretend that nodes have this many ranks; 0: ask MPI which ranks share memory.
        """
        if ranks_per_node:
            node_of = [rank // ranks_per_node for rank in range(comm.size)]
        else:
            from mpi4py import MPI

            node = comm.Split_type(MPI.COMM_TYPE_SHARED)
            node_of = comm.allgather(node.bcast(comm.rank))
            node.Free()
        names = sorted(set(node_of))
        return cls(comm, [[rank for rank, own in enumerate(node_of) if own == name] for name in names])

    @classmethod
    def among(cls, comm: Comm) -> "Ranks | None":
        """All ranks of a comm; None if this process is alone.  All ranks call this together."""
        return cls.of(comm.mpi) if isinstance(comm, Mpi) and comm.size > 1 else None

    @property
    def own_node(self) -> int:
        """The index of this rank's node in ``nodes``."""
        return next(j for j, node in enumerate(self.nodes) if self.comm.rank in node)

    def group(self, least_nodes: int) -> "Ranks":
        """The ranks of this rank's group; every group of at least ``least_nodes`` nodes keeps one copy.

        The ranks of a group are numbered anew, node by node.  All ranks call this together; the caller frees
        ``comm``.
        """
        groups = groups_of_nodes(self.nodes, least_nodes)
        own = next(k for k, group in enumerate(groups) if any(self.comm.rank in node for node in group))
        members = [rank for node in groups[own] for rank in node]
        comm = self.comm.Split(own, members.index(self.comm.rank))
        numbers = iter(range(len(members)))
        return Ranks(comm, [[next(numbers) for _ in node] for node in groups[own]])
