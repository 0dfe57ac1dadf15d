"""Ranks, their nodes and groups of nodes, with a communicator that only knows its numbers."""

from dataclasses import dataclass

import pytest

from orienteer.compute.ranks.comm import SERIAL
from orienteer.mtip.references.topology import Ranks


@dataclass
class Numbers:
    rank: int
    size: int

    def Split(self, colour: int, key: int) -> "Numbers":
        return Numbers(key, colour)


def test_nodes_that_are_made_up_have_so_many_ranks_each() -> None:
    assert Ranks.of(Numbers(0, 5), 2).nodes == [[0, 1], [2, 3], [4]]
    assert Ranks.of(Numbers(3, 5), 2).own_node == 1


@pytest.mark.parametrize(
    ("rank", "least_nodes", "nodes", "number"),
    [
        (3, 1, [[0, 1]], 1),
        (4, 1, [[0]], 0),
        (1, 2, [[0, 1], [2, 3], [4]], 1),
        (4, 3, [[0, 1], [2, 3], [4]], 4),
    ],
)
def test_a_group_has_its_nodes_with_ranks_numbered_anew(
    rank: int, least_nodes: int, nodes: list[list[int]], number: int
) -> None:
    group = Ranks.of(Numbers(rank, 5), 2).group(least_nodes)
    assert group.nodes == nodes
    assert group.comm.rank == number


def test_a_process_alone_has_nobody_to_share_with() -> None:
    assert Ranks.among(SERIAL) is None
