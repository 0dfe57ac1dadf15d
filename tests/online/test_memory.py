"""The memory of rounds, against the sums that it stands for."""

import numpy as np
import pytest

from orienteer.online.memory import Memory
from orienteer.reconstruction.model.compression import Solved
from orienteer.reconstruction.model.relative_intensity import prior_photons

PRIOR = prior_photons(8.0)


def made_up_round(seed: int, n: int = 5) -> Solved:
    draw = np.random.default_rng(seed)
    return [
        [(draw.normal(1, 0.2, (n, n, n)).astype(np.float32), draw.uniform(50, 90, (n, n, n)))]
        for _ in range(2)
    ]


def test_a_round_of_all_hits_remembers_nothing() -> None:
    memory = Memory()
    memory.joined(made_up_round(0), PRIOR)
    new = made_up_round(1)
    assert memory.joined(new, PRIOR) is new


def test_what_is_remembered_weighs_as_the_forgetting_sum_of_all_rounds() -> None:
    share, memory = 0.25, Memory()
    memory.share = share
    rounds = [made_up_round(seed) for seed in range(12)]
    for each in rounds:
        found = memory.joined(each, PRIOR)
    weights = [(1 - share) ** (len(rounds) - 1 - i) for i in range(len(rounds))]
    exposure = sum(w * each[1][0][1] for w, each in zip(weights, rounds, strict=True))
    photons = sum(w * each[1][0][1] * each[1][0][0] for w, each in zip(weights, rounds, strict=True))
    assert found[1][0][1] == pytest.approx(exposure)
    # The photons of the prior, which every round has, are a few thousandths of all.
    assert found[1][0][0] == pytest.approx(photons / exposure, abs=3e-3)


def test_rounds_of_a_fourth_of_the_hits_come_to_weigh_as_all_of_them() -> None:
    memory, each = Memory(), made_up_round(3)
    memory.share = 0.25
    for _ in range(40):
        found = memory.joined(each, PRIOR)
    assert found[0][0][1] == pytest.approx(4 * each[0][0][1], rel=1e-4)


def test_cubes_of_another_stage_are_forgotten() -> None:
    memory = Memory()
    memory.share = 0.25
    memory.joined(made_up_round(0, n=5), PRIOR)
    new = made_up_round(1, n=7)
    assert memory.joined(new, PRIOR) is new


def test_a_restored_memory_remembers_the_same() -> None:
    memory, other = Memory(), Memory()
    memory.share = other.share = 0.5
    memory.joined(made_up_round(0), PRIOR)
    other.restore(memory.state(), np)
    new = made_up_round(1)
    for one, two in zip(memory.joined(new, PRIOR), other.joined(new, PRIOR), strict=True):
        assert np.array_equal(one[0][0], two[0][0])
        assert np.array_equal(one[0][1], two[0][1])


def test_no_more_is_kept_than_the_cubes_themselves() -> None:
    sums = np.ones((5, 5, 5, 2))
    memory = Memory()
    for share in (1.0, 0.5):
        memory.share = share
        memory.joined([[(np.ones((5, 5, 5), np.float32), sums[..., 1])]], PRIOR)
        assert all(cube.base is None for half in memory._kept for pair in half for cube in pair)
