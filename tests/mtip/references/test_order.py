"""Shares and orders for any number of ranks on any nodes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orienteer.errors import OrienteerError
from orienteer.mtip.references.order import groups_of_nodes, shares, visiting_order


@st.composite
def machines(draw: st.DrawFn) -> list[list[int]]:
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=6))
    ranks = iter(range(sum(sizes)))
    return [[next(ranks) for _ in range(size)] for size in sizes]


@given(st.integers(0, 200), st.integers(1, 40))
def test_every_tile_has_one_holder_and_shares_differ_by_one(n_tiles: int, n_holders: int) -> None:
    held = shares(n_tiles, n_holders)
    assert [tile for share in held for tile in share] == list(range(n_tiles))
    sizes = [len(share) for share in held]
    assert max(sizes) - min(sizes) <= 1


@given(machines())
def test_in_every_step_each_share_has_exactly_one_reader(nodes: list[list[int]]) -> None:
    ranks = [rank for node in nodes for rank in node]
    orders = [visiting_order(nodes, rank) for rank in ranks]
    assert all(sorted(order) == ranks for order in orders)
    assert all(order[0] == rank for order, rank in zip(orders, ranks, strict=True))
    for step in range(len(ranks)):
        assert sorted(order[step] for order in orders) == ranks


@given(st.integers(1, 6), st.integers(1, 6))
def test_on_equal_nodes_it_is_the_published_order(n_nodes: int, per_node: int) -> None:
    """Algorithm 2 as its authors meant it: places from the own one, and for each all nodes from the own."""
    nodes = [list(range(j * per_node, (j + 1) * per_node)) for j in range(n_nodes)]
    for rank in range(n_nodes * per_node):
        local, node = rank % per_node, rank // per_node
        published = [
            (i + j * per_node) % (per_node * n_nodes)
            for i in [*range(local, per_node), *range(local)]
            for j in [*range(node, n_nodes), *range(node)]
        ]
        assert visiting_order(nodes, rank) == published


@given(st.integers(2, 6), st.integers(1, 6))
def test_on_equal_nodes_each_node_is_read_by_one_node(n_nodes: int, per_node: int) -> None:
    nodes = [list(range(j * per_node, (j + 1) * per_node)) for j in range(n_nodes)]
    for step in range(n_nodes * per_node):
        readers: dict[int, set[int]] = {}
        for rank in range(n_nodes * per_node):
            holder = visiting_order(nodes, rank)[step]
            readers.setdefault(holder // per_node, set()).add(rank // per_node)
        assert all(len(own) == 1 for own in readers.values())


@given(machines(), st.integers(1, 8))
def test_groups_have_enough_nodes_and_are_as_many_as_can_be(nodes: list[list[int]], least: int) -> None:
    groups = groups_of_nodes(nodes, least)
    assert [node for group in groups for node in group] == nodes
    if len(nodes) >= least:
        assert all(least <= len(group) < 2 * least for group in groups)
    else:
        assert len(groups) == 1


def test_a_rank_on_no_node_is_told() -> None:
    with pytest.raises(OrienteerError, match="rank 3 is on none of the 2 nodes"):
        visiting_order([[0, 1], [2]], 3)
