"""Which rank keeps which tiles, and the order in which each rank reads them.

Every rank reads the shares of all ranks, its own first.  If all began with rank 0, one window would serve
all readers while the others idle.  Here, in each step, every rank reads a different share: each window has
one reader, and each node is read by one node.  This is the low-contention access of Shah et al. (2024).
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

from orienteer.errors import OrienteerError

# Ranks of a communicator, node by node.
Nodes: TypeAlias = Sequence[Sequence[int]]


def shares(n_tiles: int, n_holders: int) -> list[range]:
    """The tiles of each holder: consecutive, and equally many to within one.

    >>> shares(5, 2)
    [range(0, 2), range(2, 5)]
    """
    ends = [n_tiles * holder // n_holders for holder in range(n_holders + 1)]
    return [range(first, last) for first, last in pairwise(ends)]


def visiting_order(nodes: Nodes, rank: int) -> list[int]:
    """The rank whose share ``rank`` reads in each step; in every step, each share has exactly one reader.

    If all nodes have the same size, a rank starts at its own place, goes from node to node, and then to the
    next place on each.  Ranks of nodes of unequal size form one ring instead, with neighbours on different
    nodes as far as possible.

    >>> [visiting_order([[0, 1], [2, 3]], rank) for rank in range(4)]
    [[0, 2, 1, 3], [1, 3, 0, 2], [2, 0, 3, 1], [3, 1, 2, 0]]
    """
    places = {member: (i, j) for j, node in enumerate(nodes) for i, member in enumerate(node)}
    if rank not in places:
        raise OrienteerError(f"rank {rank} is on none of the {len(nodes)} nodes that were given.")
    n_nodes, most = len(nodes), max(map(len, nodes))
    if all(len(node) == most for node in nodes):
        place, own = places[rank]
        return [nodes[(own + j) % n_nodes][(place + i) % most] for i in range(most) for j in range(n_nodes)]
    ring = sorted(places, key=places.__getitem__)
    at = ring.index(rank)
    return ring[at:] + ring[:at]


def groups_of_nodes(nodes: Nodes, least_nodes: int) -> list[list[Sequence[int]]]:
    """Nodes in as many groups as possible of at least ``least_nodes`` nodes; each group keeps one copy.

    >>> groups_of_nodes([[0], [1], [2], [3], [4]], 2)
    [[[0], [1]], [[2], [3], [4]]]
    """
    n_groups = max(1, len(nodes) // max(1, least_nodes))
    return [[nodes[j] for j in share] for share in shares(len(nodes), n_groups)]
