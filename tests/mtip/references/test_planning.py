"""What is chosen where making, memory, network or disk is dear."""

from dataclasses import replace

import pytest

from orienteer.mtip.references.planning import Demand, Rates, best_of_kind, choose_references, options

GiB = 2**30
NODES = [[0, 1], [2, 3]]
# Slices are as dear as scores; memory and network are much cheaper, the disk is dearer.
RATES = Rates(make=1e-2, score=1e-2, memory=1e-4, near=1e-4, network=5e-3, disk=0.1)
FAR = Rates(make=1e-2, score=1e-2, memory=1e-4, near=1e-4, network=1.5e-2, disk=0.1)


def demand(passes: int = 10, memory: float = 100.0, disk: float = 0.0) -> Demand:
    return Demand(1024, 8 * 2**20, passes, memory * GiB, disk * GiB)


def test_slices_that_are_read_once_by_one_rank_are_made_anew() -> None:
    choice = choose_references(demand(passes=1), RATES)
    assert choice.option.kind == "recompute"
    assert choice.why == (
        "Slices are made anew for every batch of frames, in 20 s: kept in memory, they would take 21 s."
    )


def test_slices_that_are_read_often_are_kept() -> None:
    choice = choose_references(demand(), RATES)
    assert choice.option.kind == "replicate"
    assert choice.option.seconds == pytest.approx(1024 * (1e-2 + 10 * (1e-4 + 1e-2)))
    assert choice.why == (
        "Slices are kept in memory, 8 GiB a rank: 114 s instead of 205 s to make them anew for every batch."
    )


@pytest.mark.parametrize(
    ("memory", "kind", "nodes_per_copy"),
    [(100.0, "share", 0), (5.0, "share", 0), (3.0, "distribute", 2), (1.0, "recompute", 0)],
)
def test_the_fastest_that_fits_is_taken(memory: float, kind: str, nodes_per_copy: int) -> None:
    """8 GiB on a rank, 4 on each of a node, 2 and two buffers on each of all four."""
    choice = choose_references(demand(memory=memory), FAR, NODES)
    assert (choice.option.kind, choice.option.nodes_per_copy) == (kind, nodes_per_copy)


def test_ranks_with_few_frames_share_even_what_is_read_once() -> None:
    """Each of four ranks would make every slice; together they make a quarter each."""
    choice = choose_references(demand(passes=1), RATES, NODES)
    assert choice.option.kind == "distribute"
    assert choice.option.seconds == pytest.approx(256 * 1e-2 + 512 * (1e-4 + 1e-2) + 512 * 1e-2)


def test_tiles_that_are_claimed_cannot_be_fetched_ahead() -> None:
    """Nothing hides what a tile takes to come, and sharing pays less."""
    ahead, claimed = (
        next(o for o in options(replace(demand(), in_order=known), RATES, NODES) if o.kind == "distribute")
        for known in (True, False)
    )
    assert claimed.seconds - ahead.seconds == pytest.approx(10 * 512 * RATES.network)


def test_where_scoring_is_long_nothing_is_worth_its_memory() -> None:
    slow = Rates(make=1e-2, score=1.0, memory=1e-4, near=1e-4, network=5e-3, disk=0.1)
    assert choose_references(demand(passes=3), slow, NODES).option.kind == "recompute"


def test_a_disk_that_is_read_while_tiles_are_scored_serves_where_memory_does_not() -> None:
    slow = Rates(make=1.0, score=0.2, memory=1e-4, near=1e-4, network=5e-3, disk=0.1)
    choice = choose_references(demand(memory=0.5, disk=100.0), slow)
    assert choice.option.kind == "disk"
    assert "on disk" in choice.why
    assert "kept in memory, they would need 8 GiB a rank, but only 0.5 GiB is available" in choice.why
    assert choose_references(demand(memory=0.5, disk=1.0), slow).option.kind == "recompute"


def test_over_a_slow_network_groups_of_nodes_are_as_small_as_their_memory_allows() -> None:
    nodes = [[rank] for rank in range(8)]
    found = {o.nodes_per_copy: o for o in options(demand(), FAR, nodes) if o.kind == "distribute"}
    assert sorted(found) == [2, 4, 8]
    assert found[2].seconds < found[4].seconds < found[8].seconds
    choice = choose_references(demand(memory=2.5), FAR, nodes)
    assert choice.option.nodes_per_copy == 4
    assert "once on every 4 nodes" in choice.why


def test_of_a_kind_that_is_asked_for_the_fastest_that_fits_is_taken_or_the_smallest() -> None:
    nodes = [[rank] for rank in range(8)]
    sizes = [best_of_kind("distribute", demand(memory=room), FAR, nodes).nodes_per_copy for room in (9, 3, 0)]
    assert sizes == [2, 4, 8]
    assert best_of_kind("share", demand(), FAR, nodes).kind == "share"


def test_over_a_fast_network_more_nodes_have_less_to_make() -> None:
    nodes = [[rank] for rank in range(8)]
    assert choose_references(demand(), RATES, nodes).option.nodes_per_copy == 8


def test_nodes_of_unequal_size_cost_what_the_smallest_group_has_to_do() -> None:
    found = {o.kind: o for o in options(demand(passes=1), RATES, [[0, 1, 2], [3]])}
    assert "share" not in found
    near = 256  # tiles on the node that has one rank
    assert found["distribute"].seconds == pytest.approx(
        256 * 1e-2 + near * (1e-4 + 1e-2) + (1024 - near) * 1e-2
    )
