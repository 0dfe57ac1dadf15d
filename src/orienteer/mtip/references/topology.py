"""Ranks and the nodes that they are on, as MPI tells or as a test wants it."""

from dataclasses import dataclass
from typing import Any

from orienteer.compute.ranks.comm import Comm
from orienteer.compute.ranks.mpi import Mpi
from orienteer.mtip.references.order import Nodes, groups_of_nodes


@dataclass(frozen=True, eq=False)
class Ranks:
    """Those who keep references together.

    comm : an mpi4py communicator of all of them.
    nodes : its ranks, node by node.
    """

    comm: Any
    nodes: Nodes

    @classmethod
    def of(cls, comm: Any, ranks_per_node: int = 0) -> "Ranks":
        """All ranks of a communicator.

        ranks_per_node : pretend that nodes have so many ranks; 0: ask MPI which ranks share memory.
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
        """All ranks of a comm; None: this process is alone.  Everybody asks together."""
        return cls.of(comm.mpi) if isinstance(comm, Mpi) and comm.size > 1 else None

    @property
    def own_node(self) -> int:
        """The place of this rank's node in ``nodes``."""
        return next(j for j, node in enumerate(self.nodes) if self.comm.rank in node)

    def group(self, least_nodes: int) -> "Ranks":
        """Those of this rank's group, where groups of at least so many nodes keep a copy each.

        The ranks of a group are numbered anew, node by node.  Everybody calls it; whoever has it frees
        ``comm``.
        """
        groups = groups_of_nodes(self.nodes, least_nodes)
        own = next(k for k, group in enumerate(groups) if any(self.comm.rank in node for node in group))
        members = [rank for node in groups[own] for rank in node]
        comm = self.comm.Split(own, members.index(self.comm.rank))
        numbers = iter(range(len(members)))
        return Ranks(comm, [[next(numbers) for _ in node] for node in groups[own]])
