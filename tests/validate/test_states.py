"""Which model of a half is which state of a run, and what is told of each."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from orienteer.compare.structure_density import intensity_of
from orienteer.particle.named_bodies import random_blobs
from orienteer.validate.intensities import IntensityAgreement
from orienteer.validate.result import HalfSummary, Validation
from orienteer.validate.states import StateAgreement, is_distinct, likenesses, only_state, pair_states
from orienteer.volume.volume import Volume


@pytest.fixture(scope="module")
def states() -> list[Volume]:
    return [intensity_of(random_blobs(200.0, 20, seed), 21, 1 / 600) for seed in (5, 9)]


def test_states_are_found_again_in_whatever_order_a_half_has_them(states: list[Volume]) -> None:
    noise = np.random.default_rng(1)
    half = [
        volume.with_values((volume.values * noise.normal(1, 0.2, volume.shape)).astype(np.float32))
        for volume in states
    ]
    assert pair_states(states, half) == [0, 1]
    assert pair_states(states, half[::-1]) == [1, 0]


def test_a_half_with_fewer_models_has_none_of_the_states_that_are_left(states: list[Volume]) -> None:
    assert pair_states(states, states[1:]) == [None, 0]
    assert pair_states(states, states[:1]) == [0, None]


def test_states_are_distinct_where_halves_of_one_are_closer_than_those_of_others(
    states: list[Volume],
) -> None:
    noise = np.random.default_rng(1)

    def noisy(volume: Volume) -> Volume:
        return volume.with_values((volume.values * noise.normal(1, 0.2, volume.shape)).astype(np.float32))

    apart = likenesses([noisy(state) for state in states], [noisy(state) for state in states])
    assert [is_distinct(apart, m, m) for m in (0, 1)] == [True, True]
    copies = likenesses([noisy(states[0]) for _ in range(2)], [noisy(states[0]) for _ in range(2)])
    assert [is_distinct(copies, m, m) for m in (0, 1)] == [False, False]
    assert is_distinct(np.ones((1, 1)), 0, 0)  # nothing else was found


def test_frames_of_other_states_show_nothing_of_one() -> None:
    columns = {"model": np.array([0, 1, -1, 0]), "fluence": np.ones(4)}
    assert only_state(columns, 0)["model"].tolist() == [0, -1, -1, 0]
    assert only_state(columns, 1)["model"].tolist() == [-1, 1, -1, -1]
    assert columns["model"].tolist() == [0, 1, -1, 0]


def agreement(correlation: float) -> IntensityAgreement:
    q = np.arange(12) / 400
    return IntensityAgreement(np.array([1.0, 0, 0, 0]), q, np.full(12, correlation), 200.0)


def test_only_states_that_both_halves_have_found_are_counted() -> None:
    halves = tuple(HalfSummary(f"half_{n}", n, n, 100, 10, "done", 200.0) for n in (1, 2))
    maps: Any = SimpleNamespace(resolutions={"0.143": SimpleNamespace(resolution_A=50.0)})
    good = agreement(0.9)
    known = StateAgreement(1, (1, 2), 0.5, maps, good, good)
    copy = StateAgreement(2, (2, 1), 0.3, maps, good, good, is_distinct=False)
    absent = StateAgreement.absent(2, (2, None), 0.2, 200.0)

    def said(*states: StateAgreement) -> str:
        return Validation("id", 3, halves, None, good, good, states=states).statement  # type: ignore[arg-type]

    assert "agree on 2 states by themselves: state 1 to 50 A, state 1 to 50 A" in said(known, known)
    assert "agree on 1 of 3 states by themselves: state 1 to 50 A, state 2 to 50 A, but no closer" in said(
        known, copy, absent
    )
    assert absent.words == "state 3 not found in half 2"
    assert StateAgreement.absent(0, (None, None), 0.2, 200.0).words == "state 1 not found in either half"
    assert absent.resolution_A is None
    assert absent.describe()["speckles_A"] is None
    assert absent.describe()["models"] == [3, None]


def test_the_claim_names_each_state(tmp_path: Any) -> None:
    halves = tuple(HalfSummary(f"half_{n}", n, n, 100, 10, "done", 200.0) for n in (1, 2))
    known = StateAgreement(1, (1, 2), 0.7, None, agreement(0.9), agreement(0.9))
    unknown = StateAgreement(2, (2, 1), 0.3, None, agreement(0.0), agreement(0.0))
    found = Validation("id", 3, halves, None, known.intensity, known.whole, states=(known, unknown))
    assert found.statement == (
        "Two independent halves of 100 and 100 frames agree on none of 2 states by themselves: state 1 "
        "nowhere, state 2 nowhere (FSC 0.143)."
    )
    told = found.describe()["states"]
    assert [one["state"] for one in told] == [1, 2]
    assert told[0]["speckles_A"] < 50
    assert told[1]["speckles_A"] is None
    given = replace(found, given=("known orientations",))
    assert given.statement.startswith("Two halves with known orientations of 100 and 100 frames")
