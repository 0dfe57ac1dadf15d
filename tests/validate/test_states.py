"""Which model of a half is which state of a run, and what is told of each."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from orienteer.compare.structure_density import intensity_of
from orienteer.particle.named_bodies import random_blobs
from orienteer.validate.intensities import IntensityAgreement
from orienteer.validate.result import HalfSummary, Validation
from orienteer.validate.states import StateAgreement, only_state, pair_states
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


def test_a_half_with_fewer_models_stands_in_with_the_nearest(states: list[Volume]) -> None:
    assert pair_states(states, states[1:]) == [0, 0]


def test_frames_of_other_states_show_nothing_of_one() -> None:
    columns = {"model": np.array([0, 1, -1, 0]), "fluence": np.ones(4)}
    assert only_state(columns, 0)["model"].tolist() == [0, -1, -1, 0]
    assert only_state(columns, 1)["model"].tolist() == [-1, 1, -1, -1]
    assert columns["model"].tolist() == [0, 1, -1, 0]


def agreement(correlation: float) -> IntensityAgreement:
    q = np.arange(12) / 400
    return IntensityAgreement(np.array([1.0, 0, 0, 0]), q, np.full(12, correlation), 200.0)


def test_the_claim_names_each_state(tmp_path: Any) -> None:
    halves = tuple(HalfSummary(f"half_{n}", n, n, 100, 10, "done", 200.0) for n in (1, 2))
    known = StateAgreement(1, (1, 2), 0.7, None, agreement(0.9), agreement(0.9))
    unknown = StateAgreement(2, (2, 1), 0.3, None, agreement(0.0), agreement(0.0))
    found = Validation("id", 3, halves, None, known.intensity, known.whole, states=(known, unknown))
    assert found.statement == (
        "Two independent halves of 100 and 100 frames agree on 2 states by themselves: state 1 nowhere, "
        "state 2 nowhere (FSC 0.143)."
    )
    told = found.describe()["states"]
    assert [one["state"] for one in told] == [1, 2]
    assert told[0]["speckles_A"] < 50
    assert told[1]["speckles_A"] is None
    given = replace(found, given=("known orientations",))
    assert given.statement.startswith("Two halves with known orientations of 100 and 100 frames")
