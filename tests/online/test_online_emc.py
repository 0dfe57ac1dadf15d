"""A growing reconstruction: rounds that are EMC, an early map, a final one as good as batch, and restarts."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from orienteer.online import growth
from orienteer.online.online_emc import OnlineEmc, OnlineStep
from orienteer.online.reservoir import Reservoir
from orienteer.reconstruction import carried
from orienteer.reconstruction.emc import Emc
from orienteer.reconstruction.step import Step
from orienteer.source.patterns import Patterns

Make = Callable[..., OnlineEmc]
ToTheEnd = Callable[..., list[OnlineStep]]
# For what has nothing to do with how good the map is.
COARSE = {"level": 2, "refine": False}


@pytest.fixture
def batch(frames: Any, online: Make) -> Callable[[], Emc]:
    """Makes the batch reconstruction of all frames, as the growing one has its settings."""
    return lambda: Emc(frames, online(frames).settings, seed=1, device="cpu")


@pytest.fixture(scope="module")
def batch_end(frames: Any, online: Make) -> Step:
    """What the last iteration of the batch reconstruction says."""
    emc = Emc(frames, online(frames).settings, seed=1, device="cpu")
    while not emc.finished:
        step = emc.step()
    return step


def test_while_all_hits_fit_a_round_is_an_iteration_of_batch_emc(
    growing: Callable[..., Any], online: Make, batch: Callable[[], Emc]
) -> None:
    method, emc = online(growing(240), round_hits=240), batch()
    method.look(False)
    assert method.has_work
    for _ in range(3):
        step, wanted = method.step(), emc.step()
        assert step.log_likelihood == wanted.log_likelihood
    assert np.array_equal(method.volumes()[0].values, emc.volumes()[0].values, equal_nan=True)


def test_the_first_map_comes_with_the_first_hits(growing: Callable[..., Any], online: Make) -> None:
    source = growing(59)
    method = online(source)
    method.look(False)
    assert not method.has_work
    source.arrive(1)
    method.look(False)
    assert method.has_work
    step = method.step()
    assert (step.n_hits, step.n_new, step.n_round, step.n_waiting) == (60, 60, 60, 0)
    assert np.isfinite(method.volumes()[0].values).any()
    assert len(method.orientations()["event_id"]) == 60


def test_new_hits_come_first_and_every_hit_has_its_turn(growing: Callable[..., Any], online: Make) -> None:
    source = growing(100)
    method = online(source, round_hits=100)
    method.look(False)
    assert method.has_work
    method.step()
    for n_new in (30, 60, 50):
        source.arrive(n_new)
        method.look(False)
        step = method.step()
        assert (step.n_new, step.n_round) == (n_new, 100)
    visited = method.reservoir.visited
    assert (visited[-50:] == 3).all()
    # Of 240 hits 190 are old, and 50 of them have a turn in each round.
    assert visited.min() >= 1


@pytest.mark.parametrize(
    "seed", [0, pytest.param(1, marks=pytest.mark.slow(reason="another order is tried every time"))]
)
def test_the_final_map_is_as_good_as_that_of_batch_in_any_order_of_arrival(
    seed: int, growing: Callable[..., Any], online: Make, batch_end: Step, to_the_end: ToTheEnd
) -> None:
    wanted = batch_end
    order = np.random.default_rng(seed).permutation(240)
    method = online(growing(order=order))
    steps = to_the_end(method, at_once=80)
    last = steps[-1]
    assert last.finished
    assert last.reason
    assert not any(step.finished for step in steps[:-1])
    assert [step.iteration for step in steps] == list(range(1, len(steps) + 1))
    assert last.n_hits == 240
    assert last.n_round == 240
    assert last.agrees_to_A == pytest.approx(wanted.agrees_to_A, rel=0.05)
    assert last.log_likelihood == pytest.approx(wanted.log_likelihood, abs=0.5)
    ids = method.orientations()["event_id"]
    assert set(ids.tolist()) == set(method.source.event_ids().tolist())


@pytest.mark.slow(
    reason="that the end has both starts, and that one is as good as batch, is tried every time"
)
def test_with_both_starts_the_end_is_never_less_likely_than_batch(
    growing: Callable[..., Any], online: Make, batch_end: Step, to_the_end: ToTheEnd
) -> None:
    wanted = batch_end
    steps = to_the_end(online(growing(), finish="both"))
    chosen = [step.note for step in steps if "goes on" in step.note]
    assert len(chosen) == 1
    assert "of 2 goes on" in chosen[0]
    assert steps[-1].log_likelihood >= wanted.log_likelihood - 0.1


@pytest.mark.parametrize("n_before", [2, 7])
def test_a_restored_reconstruction_goes_on_bit_for_bit(
    n_before: int, growing: Callable[..., Any], online: Make
) -> None:
    settings = {"finish": "continue", "round_hits": 90, "first_hits": 200}
    one = online(growing(200), **settings)
    one.look(False)
    assert one.has_work
    for _ in range(n_before):
        one.step()
    other = online(growing(200), **settings)
    other.restore(one.state())
    assert other.iteration == n_before
    for method in (one, other):
        method.source.arrive(40)
        for over in (False, True, True, True):  # rounds, then iterations of the end
            method.look(over)
            assert method.has_work
            method.step()
    state, wanted = other.state(), one.state()
    assert set(state) == set(wanted)
    assert any(name.startswith("final/") for name in state)
    different = [
        name for name, value in wanted.items()
        if not np.array_equal(np.asarray(state[name]), np.asarray(value), equal_nan=value is not None
                              and np.asarray(value).dtype.kind == "f")
    ]  # fmt: skip
    assert different == []
    assert np.array_equal(other.volumes()[0].values, one.volumes()[0].values, equal_nan=True)


def test_the_end_itself_can_be_restored(growing: Callable[..., Any], online: Make) -> None:
    one = online(growing(240))
    one.look(True)
    assert one.has_work
    one.step()
    other = online(growing(240))
    other.restore(one.state())
    other.look(True)
    assert other.step().log_likelihood == one.step().log_likelihood


def test_hits_that_come_faster_than_a_stage_takes_them_lead_back_to_a_coarser_one(
    growing: Callable[..., Any], online: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growth, "_MOST_NEW", 1)
    source = growing(60)
    method = online(source, round_hits=60, emc={"level": 4})
    while not method.iteration or method._carried["course/stage"] == 0:
        method.look(False)
        assert method.has_work
        method.step()
        assert method.iteration < 60
    source.arrive(180)
    method.look(False)
    step = method.step()
    assert (step.n_new, step.n_waiting) == (60, 120)
    assert "coarser" in step.note
    method.look(False)
    assert method.step().stage == 1


def test_when_nothing_comes_it_replays_until_it_has_settled_and_then_waits(
    growing: Callable[..., Any], online: Make
) -> None:
    source = growing(100)
    method = online(source, COARSE)
    method.look(False)
    while method.has_work:
        method.step()
        assert method.iteration < 100
    assert not method.finished
    source.arrive(10)
    method.look(False)
    assert method.has_work
    assert method.step().n_new == 10


def test_a_start_that_finds_nothing_is_followed_by_another_when_there_are_more_hits(
    frames: Any, growing: Callable[..., Any], online: Make
) -> None:
    patterns = frames.read()
    draw = np.random.default_rng(0)
    noise = draw.poisson(patterns.dense().mean(axis=0), patterns.dense().shape)
    empty = type(patterns)(noise.astype(np.int32), patterns.event_id, patterns.columns)
    source = growing(60, patterns=empty)
    method, notes = online(source, emc={"sentinels": 0.4}), []
    method.look(False)
    while method.has_work:
        notes.append(method.step().note)
        assert method.iteration < 100
    assert "agree on nothing" in notes[-1]
    again = online(source, emc={"sentinels": 0.4})
    again.restore(method.state())
    assert np.array_equal(again.volumes()[0].values, method.volumes()[0].values, equal_nan=True)
    source.arrive(20)
    method.look(False)
    assert not method.has_work
    source.arrive(20)
    method.look(False)
    assert method.has_work
    step = method.step()
    assert step.start == 2
    assert step.n_round == 100


def test_hits_that_are_not_chosen_are_never_seen(growing: Callable[..., Any], online: Make) -> None:
    source = growing(240)
    method = online(source, select=lambda columns: columns["truth_orientation"][:, 0] > 0.3)
    method.look(False)
    assert method.has_work
    step = method.step()
    wanted = source.event_ids()[source.read_columns(["truth_orientation"])["truth_orientation"][:, 0] > 0.3]
    assert step.n_hits == len(wanted) < 240
    assert np.array_equal(method.orientations()["event_id"], wanted)


def test_of_more_hits_than_memory_holds_a_sample_is_kept_and_the_end_has_all(
    growing: Callable[..., Any], online: Make, to_the_end: ToTheEnd
) -> None:
    method = online(growing(), COARSE, round_hits=20, memory_GiB=60 * 600 / 2**30)
    steps = to_the_end(method)
    assert 20 <= method.reservoir.capacity < 200
    assert len(method.reservoir) < 240
    assert steps[-1].n_round == 240
    assert len(method.orientations()["event_id"]) == 240


def test_a_map_that_begins_late_keeps_no_more_hits_than_there_is_room_for(
    growing: Callable[..., Any], online: Make
) -> None:
    """Hits that came before anybody looked wait in the source, and not in memory."""
    source = growing(240)
    per_hit = Reservoir(source)
    per_hit.add(np.arange(240), source.read())
    room = 150 * per_hit.nbytes / 240
    method = online(source, round_hits=10, first_hits=20, memory_GiB=room / 2**30)
    most = 0

    def watch(reservoir: Any, place: Any, patterns: Any) -> None:
        nonlocal most
        add(reservoir, place, patterns)
        most = max(most, reservoir.nbytes)

    with pytest.MonkeyPatch.context() as patch:
        add = Reservoir.add
        patch.setattr(Reservoir, "add", watch)
        method.look(False)
        assert method.has_work
        step = method.step()
        for _ in range(3):
            method.look(False)
            method.step()
    assert most <= room
    assert step.n_round == 40  # new hits, four times as many as a round has of old ones


def test_another_start_comes_with_more_hits_though_no_more_are_kept(
    growing: Callable[..., Any], online: Make
) -> None:
    source = growing(120)
    method = online(source, round_hits=20, first_hits=60, memory_GiB=1e-9)
    method.look(False)
    method.step()
    assert len(method.reservoir) < 60
    method._failed_at = 120  # after which a start has found nothing
    method._start_anew()
    source.arrive(59)
    method.look(False)
    assert not method.has_work
    source.arrive(1)
    method.look(False)
    assert method.has_work


@pytest.mark.parametrize(("n", "words"), [(0, "No hits came"), (1, "1 hit came"), (7, "7 hits came")])
def test_without_enough_hits_it_ends_in_words(
    n: int, words: str, growing: Callable[..., Any], online: Make
) -> None:
    method = online(growing(n))
    method.look(True)
    assert not method.has_work
    assert method.finished
    assert method.reason == f"{words}, too few for a map."


def test_excluded_hits_take_no_part_from_then_on_and_can_be_taken_back(
    growing: Callable[..., Any], online: Make
) -> None:
    source = growing(100)
    method = online(source, COARSE)
    method.look(False)
    while method.has_work:
        method.step()
    out = source.event_ids(slice(10, 40))
    method.look(False, out)
    assert method.has_work  # it had settled
    step = method.step()
    assert (step.n_hits, step.n_excluded, step.n_round) == (70, 30, 70)
    assert not set(method.orientations()["event_id"].tolist()) & set(out.tolist())
    method.look(False)  # nothing else was said
    assert len(method.reservoir) == 70
    method.look(False, out[:10])
    assert method.has_work
    step = method.step()
    assert (step.n_hits, step.n_excluded, step.n_new) == (90, 10, 20)
    method.look(True)
    while not method.finished:
        step = method.step()
    assert step.n_round == 90
    assert set(method.orientations()["event_id"].tolist()) == set(source.event_ids().tolist()) - set(
        out[:10].tolist()
    )


def test_when_nearly_all_hits_are_excluded_the_map_begins_anew_with_others(
    growing: Callable[..., Any], online: Make
) -> None:
    source = growing(70)
    method = online(source)
    method.look(False)
    method.step()
    out = source.event_ids()
    method.look(False, out)
    assert not method.has_work
    source.arrive(70)
    method.look(False)
    assert method.has_work
    step = method.step()
    assert (step.n_hits, step.start, step.n_new) == (70, 2, 70)


def test_a_map_that_is_gone_on_with_is_the_only_start_of_the_end(
    growing: Callable[..., Any], online: Make
) -> None:
    """Also where a batch run would make several, as it does of its own accord for high symmetries."""
    source = growing(100)
    for finish, n_starts in (("continue", 1), ("both", 4)):
        method = online(source, {"starts": 3}, finish=finish)
        method.look(False)
        method.step()
        method.look(True)
        method.step()
        assert method._final is not None
        assert method._final.course.n_starts == n_starts


def test_random_models_are_made_only_for_a_start(
    growing: Callable[..., Any], online: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    own = carried.random_start
    monkeypatch.setattr(carried, "random_start", lambda *given: made.append(given) or own(*given))
    source = growing(70)
    method = online(source)
    for n_new in (0, 20, 90):  # the last time they have become more than twice as many
        source.arrive(n_new)
        method.look(False)
        method.step()
    assert method._n_prepared == 180
    assert len(made) == 1


def test_given_poses_are_kept_in_rounds_that_have_some_and_missed_in_none_that_have_not(
    growing: Callable[..., Any], online: Make, frames: Any
) -> None:
    """Hits come as they come: those of a round may all be without a pose, though others have theirs."""
    patterns = frames.read()
    poses = np.array(patterns.columns["truth_orientation"], float)
    poses[:180] = np.nan
    given = Patterns(patterns.frames, patterns.event_id, {**patterns.columns, "given": poses})
    source = growing(60, patterns=given)
    method = online(source, {"known_orientations_column": "given", "level": 2}, round_hits=60, finish="no")
    method.look(False)
    method.step()
    source.arrive(180)
    for _ in range(4):
        method.look(False)
        method.step()
    found = method.orientations()
    kept = (
        (method.reservoir.visited >= 0)
        & ~found["sentinel"]
        & np.isin(found["event_id"], given.event_id[180:])
    )
    assert kept.any()
    place = method.reservoir.place[kept]
    assert np.allclose(found["quaternion"][kept], poses[place])
