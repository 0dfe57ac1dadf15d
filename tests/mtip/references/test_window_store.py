"""References shared by ranks: what each keeps, makes and reads, on nodes that tests make up."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from orienteer.mtip.references.trace import Visit, shared_windows

SCRIPT = Path(__file__).with_name("shared_by_ranks.py")
OnRanks: TypeAlias = Callable[..., dict[str, Any]]


@pytest.fixture
def on_ranks(run_ranks: Callable[..., str]) -> OnRanks:
    """Runs the script, and checks that every rank has seen the right slices."""

    def run(n: int, *arguments: Any) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(run_ranks(n, SCRIPT, *map(str, arguments)))
        assert all(rank["right"] for rank in told["ranks"])
        return told

    return run


def visits_of(told: dict[str, Any]) -> list[Visit]:
    return [Visit(**visit) for rank in told["ranks"] for visit in rank["visits"]]


@pytest.mark.parametrize(("n_ranks", "per_node", "n_rows"), [(4, 2, 64), (3, 2, 42), (5, 2, 17)])
def test_distributed_ranks_keep_their_share_and_no_window_has_two_readers_in_a_step(
    on_ranks: OnRanks, n_ranks: int, per_node: int, n_rows: int
) -> None:
    """4 ranks on 2 nodes; and 3 and 5, on nodes of unequal size, with more ranks than full tiles."""
    told = on_ranks(n_ranks, "distribute", per_node, 0, n_rows)
    assert [len(node) for node in told["nodes"]] == [per_node] * (n_ranks // per_node) + [1] * (n_ranks % 2)
    made = [rank["made"] for rank in told["ranks"]]
    assert sum(made) == told["tiles"]
    assert max(made) - min(made) <= 1
    assert [rank["bytes"] for rank in told["ranks"]] == [n * told["slot_bytes"] for n in made]
    visits = visits_of(told)
    assert len(visits) == n_ranks * told["tiles"]
    assert shared_windows(visits) == []
    node_of = {rank: j for j, node in enumerate(told["nodes"]) for rank in node}
    assert all(v.is_copied == (node_of[v.reader] != node_of[v.holder]) for v in visits)


def test_a_node_shares_one_copy_and_copies_nothing(on_ranks: OnRanks) -> None:
    told = on_ranks(4, "share", 2, 0, 64)
    assert [rank["made"] for rank in told["ranks"]] == [8, 8, 8, 8]
    assert all(rank["bytes"] == 8 * told["slot_bytes"] for rank in told["ranks"])
    assert not any(visit.is_copied for visit in visits_of(told))


def test_groups_of_nodes_keep_one_copy_each_without_any_divisibility(on_ranks: OnRanks) -> None:
    """Five nodes in groups of at least two: one of two and one of three."""
    told = on_ranks(5, "distribute", 1, 2, 48)
    assert [rank["made"] for rank in told["ranks"]] == [6, 6, 4, 4, 4]
    for group in (told["ranks"][:2], told["ranks"][2:]):
        assert shared_windows(Visit(**visit) for rank in group for visit in rank["visits"]) == []


def test_a_file_on_the_node_is_written_by_all_and_read_by_all(on_ranks: OnRanks) -> None:
    told = on_ranks(3, "disk", 2, 0, 64)
    assert [rank["made"] for rank in told["ranks"]] == [8, 8, 16]
    assert all(rank["bytes"] == 0 for rank in told["ranks"])


def test_nodes_are_found_by_what_shares_memory(on_ranks: OnRanks) -> None:
    told = on_ranks(2, "share", 0, 0, 20)
    assert told["nodes"] == [[0, 1]]
