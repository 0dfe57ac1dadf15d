"""What an iteration takes on many ranks, and the mesh that suits it."""

from dataclasses import replace

import numpy as np
import pytest

from orienteer.errors import OrienteerError
from orienteer.mtip.references.order import Nodes
from orienteer.mtip.references.planning import Choice, Demand, Rates, choose_references
from orienteer.scaling import reference_sharing
from orienteer.scaling.curves import efficiency, largest_frames, strong, weak
from orienteer.scaling.machines import MACHINES
from orienteer.scaling.network import NETWORKS, gathered, summed
from orienteer.scaling.prediction import best_mesh, predict
from orienteer.scaling.problem import Problem
from orienteer.scaling.reference_sharing import choose_slices
from orienteer.scaling.traffic import traffic_of
from orienteer.scaling.words import describe_prediction, prediction_json

H200 = MACHINES["h200"]
SMALL = Problem(10_000, 4096, 86_520, 95, lit_share=0.2, n_halves=1)
LARGE = Problem(1_000_000, 16_384, 1_097_880, 187, lit_share=0.2)


def test_one_rank_takes_what_was_measured_on_one() -> None:
    """71.7 ms, beside which the new models of a real run and the judging of frames are small."""
    assert predict(SMALL, H200).seconds == pytest.approx(0.0437, rel=0.06)


def test_one_rank_sends_nothing() -> None:
    assert traffic_of(SMALL, 1, 1).n_bytes == 0
    assert predict(SMALL, H200).stages["collectives"] == 0


@pytest.mark.parametrize(("group_size", "n_groups"), [(1, 4), (2, 2), (4, 1), (3, 5)])
def test_traffic_is_what_ranks_that_send_one_by_one_would_send(group_size: int, n_groups: int) -> None:
    """Beside the formulas: every part of every array goes from rank to rank, and bytes are counted."""
    problem = Problem(n_frames=3000, n_pixels=100, n_poses=500, edge_voxels=9, n_models=2)
    n, frames = group_size * n_groups, 3000 / n_groups

    def sent_in_sum(n_bytes: float, ranks: int) -> float:
        part = n_bytes / ranks
        to_others = sum(part for other in range(ranks) if other != 0)
        total_to_others = sum(part for other in range(ranks) if other != 0)
        return to_others + total_to_others

    def sent_in_rows(own: float, ranks: int) -> float:
        return sum(own for other in range(ranks) if other != 0)

    within = sent_in_rows(24 * frames, group_size) + sent_in_sum((16 + 516 + 8 + 8) * frames, group_size)
    table = sent_in_rows((8 + 32 + 40 + 1 + 16) * 3000 / n, n)
    deposits = 2 * (sent_in_sum(2 * 16 * 9**3, n) + sent_in_sum(8 * 1000, n))
    temperature = sent_in_rows(4 * 128 * 1000 / n, n)
    found = traffic_of(problem, group_size, n_groups)
    assert found.n_bytes == pytest.approx(within + table + deposits + temperature)
    assert sum(found.by_part.values()) == pytest.approx(found.n_bytes)


def test_collectives_take_longer_with_more_ranks_and_slower_links() -> None:
    array = 1e8
    seconds = [summed(array, n).seconds(NETWORKS["ndr"]) for n in (2, 16, 4096)]
    assert seconds == sorted(seconds)
    assert summed(array, 16).seconds(NETWORKS["qdr"]) > 10 * seconds[1]
    assert gathered(array / 4, 4).n_bytes == pytest.approx(summed(array, 4).n_bytes / 2)


def test_the_best_mesh_is_the_quickest_of_those_that_fit() -> None:
    found = best_mesh(LARGE, H200, 24)
    tried = [predict(LARGE, H200, size, 24 // size) for size in (1, 2, 3, 4, 6, 8, 12, 24)]
    assert found.seconds == min(each.seconds for each in tried if each.fits)
    assert found.fits
    assert found.n_ranks == 24
    assert f"{found.n_groups} group" in found.why


def test_a_problem_that_fits_nowhere_is_told() -> None:
    huge = Problem(10_000, 16_384, 1_097_880, 2001)
    found = best_mesh(huge, H200, 8)
    assert not found.fits
    assert "no mesh fits" in found.why


def test_more_ranks_than_frames_are_refused() -> None:
    with pytest.raises(OrienteerError, match="cannot share"):
        predict(Problem(10, 100, 60, 11), H200, 4, 4)


def test_a_large_problem_is_divided_well_and_a_small_one_is_not() -> None:
    large, small = (efficiency(strong(problem, H200, (1, 8, 64, 512))) for problem in (LARGE, SMALL))
    assert large[2] > 0.8
    assert small[2] < 0.3
    assert (np.diff(small) < 0).all()


def test_new_models_are_what_no_rank_makes_shorter() -> None:
    mtip = Problem(131_072, 16_384, 86_520, 151, lit_share=0.2, method="mtip")
    one, many = predict(mtip, H200), predict(mtip, H200, 16, 16)
    assert many.stages["solve"] == one.stages["solve"] > 0
    assert many.stages["phase"] == one.stages["phase"] > 0
    assert many.stages["score"] == pytest.approx(one.stages["score"] / 256, rel=0.01)
    assert predict(mtip, H200).seconds > predict(Problem(131_072, 16_384, 86_520, 151, 0.2), H200).seconds


def test_weak_curves_have_as_many_frames_for_every_rank() -> None:
    curve = weak(Problem(1000, 4096, 17_220, 95), H200, (1, 4, 16))
    assert [each.problem.n_frames for each in curve] == [1000, 4000, 16_000]
    assert efficiency(curve)[0] == 1


def test_the_largest_data_set_grows_with_the_ranks_and_fills_them() -> None:
    few, many = (largest_frames(SMALL, H200, n) for n in (8, 64))
    assert many.problem.n_frames == pytest.approx(8 * few.problem.n_frames, rel=0.01)
    assert few.fits
    assert few.frames_on_device
    more = SMALL.with_frames(int(1.01 * few.problem.n_frames))
    assert not predict(more, H200, 1, 8).frames_on_device
    most = largest_frames(SMALL, H200, 4096)
    assert most.table_GiB == pytest.approx(H200.host_GiB, rel=0.01)  # the table of all frames is the limit
    with pytest.raises(OrienteerError, match="do not fit"):
        largest_frames(Problem(10, 100, 60, 4001), H200, 1)


def test_words_and_numbers_say_the_same() -> None:
    found, alone = best_mesh(LARGE, H200, 32), best_mesh(LARGE, H200, 1)
    told, plain = dict(describe_prediction(found, alone)), prediction_json(found, alone)
    assert told["mesh"].startswith(plain["mesh"])
    assert "(assumed)" in told["network"]
    assert plain["seconds_per_iteration"] == pytest.approx(sum(plain["stages"].values()))
    assert plain["sent_bytes"] == pytest.approx(sum(plain["sent_bytes_by_part"].values()))


def test_slices_of_mtip_are_had_in_the_way_that_costs_least() -> None:
    """On a GPU they are made faster than they could come over any network; slow slicing turns that round."""
    problem = Problem(80_000, 16_384, 262_144, 151, method="mtip")
    anew = choose_slices(predict(problem, H200, 1, 16))
    assert anew.option.kind == "recompute"
    costs = {**H200.rates.costs, "expand": {"points": 3e-8}}
    slow = replace(H200, rates=replace(H200.rates, costs=costs))
    kept = choose_slices(predict(problem, slow, 1, 16))
    assert kept.option.kind != "recompute"
    told = dict(describe_prediction(predict(problem, H200, 1, 16), predict(problem, H200)))
    assert told["references"] == anew.why


def test_slices_that_are_claimed_are_not_planned_to_be_fetched_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks of a group claim tiles of all rows, as runs do; a rank that is alone in its group reads all."""
    asked = []

    def choose(demand: Demand, rates: Rates, nodes: Nodes) -> Choice:
        asked.append((demand, nodes))
        return choose_references(demand, rates, nodes)

    monkeypatch.setattr(reference_sharing, "choose_references", choose)
    problem = Problem(80_000, 16_384, 262_144, 151, method="mtip")
    for group_size in (1, 4):
        choose_slices(predict(problem, H200, group_size, 16 // group_size))
    (alone, nodes), (claimed, same_nodes) = asked
    assert alone.n_tiles == 262_144 // predict(problem, H200, 1, 16).tile_rows
    assert alone.in_order
    assert not claimed.in_order
    assert claimed.n_tiles * claimed.tile_bytes == alone.n_tiles * alone.tile_bytes
    assert nodes == same_nodes == [list(range(8)), list(range(8, 16))]


def test_slices_that_no_memory_holds_are_planned_for_disks() -> None:
    costs = {**H200.rates.costs, "expand": {"points": 1e-5}}
    poor = replace(H200, rates=replace(H200.rates, costs=costs), memory_GiB=8.0)
    problem = Problem(80_000, 16_384, 262_144, 151, method="mtip")
    assert choose_slices(predict(problem, poor, 4, 1)).option.kind == "disk"
