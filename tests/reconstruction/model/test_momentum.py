"""Steps that go on with a share of the one before come sooner to the same end."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from orienteer.reconstruction.model.compression import Compressed
from orienteer.reconstruction.model.momentum import Momentum


def found(models: np.ndarray) -> Compressed:
    return Compressed(models, (), np.ones(3), np.ones(models.shape[2:]), prior=0.02)


def steps_to(target: np.ndarray, rate: np.ndarray, momentum: Momentum | None) -> int:
    """Steps until a model that makes so small a share of its way in each of them is there."""
    models = np.ones_like(target)
    for step in range(2000):
        if np.abs(models - target).max() < 0.01:
            return step
        new = found((models + rate * (target - models)).astype(np.float32))
        models = (new if momentum is None else momentum.carry(models, new)).models
    raise AssertionError("it never came there")


def test_a_slow_way_is_gone_in_far_fewer_steps_to_the_same_end() -> None:
    rng = np.random.default_rng(1)
    target = rng.uniform(0, 2, (2, 1, 5, 5, 5)).astype(np.float32)
    rate = rng.uniform(0.01, 1, target.shape).astype(np.float32)
    assert steps_to(target, rate, Momentum()) < steps_to(target, rate, None) / 4


def test_an_intensity_is_never_negative() -> None:
    momentum, shape = Momentum(), (1, 1, 3, 3, 3)
    falling = [np.full(shape, value, dtype=np.float32) for value in (1.0, 0.5, 0.1, 0.0)]
    for before, after in pairwise(falling):
        assert momentum.carry(before, found(after)).models.min() >= 0


def test_the_first_step_and_one_after_a_change_of_size_are_as_they_were_found() -> None:
    momentum = Momentum()
    small, large = (np.ones((2, 1, n, n, n), dtype=np.float32) for n in (3, 5))
    for models in (small, large, small):
        new = found(models + 1)
        assert momentum.carry(models, new) is new
    momentum.forget()
    assert momentum.carry(small, replace(new)).models is new.models


@pytest.mark.parametrize("n_steps", [0, 1, 2])
def test_it_goes_on_from_its_state(n_steps: int) -> None:
    rng = np.random.default_rng(2)
    one, other = Momentum(), Momentum()
    series = rng.random((6, 2, 1, 3, 3, 3)).astype(np.float32)
    for i in range(n_steps):
        one.carry(series[i], found(series[i + 1]))
    other.restore(one.state(), np)
    for i in range(n_steps, 5):
        again = [m.carry(series[i], found(series[i + 1])).models for m in (one, other)]
        np.testing.assert_array_equal(*again)
