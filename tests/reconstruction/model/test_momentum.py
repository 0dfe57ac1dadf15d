"""Steps that go on with a share of the one before come sooner to the same end."""

from itertools import pairwise

import numpy as np
import pytest

from orienteer.reconstruction.model.compression import Compressed
from orienteer.reconstruction.model.momentum import Momentum


def found(models: np.ndarray) -> Compressed:
    return Compressed(models, (), np.ones(3), np.ones(models.shape[2:]))


def steps_to(target: np.ndarray, rate: np.ndarray, momentum: Momentum | None) -> int:
    """Steps until models that make so small a share of their way in each of them are there.

    Frames of a half give back the model of the other, which orients them, and a share of the truth.
    """
    models = np.random.default_rng(3).uniform(0.5, 1.5, target.shape).astype(np.float32)
    for step in range(5000):
        if np.abs(models.mean(axis=0) - target[0]).max() < 0.01:
            return step
        new = found((models[::-1] + rate * (target - models[::-1])).astype(np.float32))
        if momentum is not None:
            new = momentum.carry(models, new)
        models = new.models
    raise AssertionError("it never came there")


@pytest.mark.parametrize(("slowest", "times"), [(0.01, 4), (0.002, 8)])
def test_a_slow_way_is_gone_in_far_fewer_steps_to_the_same_end(slowest: float, times: float) -> None:
    rng = np.random.default_rng(1)
    target = np.stack([rng.uniform(0, 2, (1, 5, 5, 5)).astype(np.float32)] * 2)
    rate = np.geomspace(slowest, 1, target[0].size).astype(np.float32).reshape(target[0].shape)
    assert steps_to(target, rate, Momentum()) < steps_to(target, rate, None) / times


def test_an_intensity_is_never_negative() -> None:
    momentum, shape = Momentum(), (1, 1, 3, 3, 3)
    falling = [np.full(shape, value, dtype=np.float32) for value in (1.0, 0.5, 0.1, 0.0)]
    for before, after in pairwise(falling):
        assert momentum.carry(before, found(after)).models.min() >= 0


def test_the_first_step_and_one_after_a_change_of_size_are_not_carried_on() -> None:
    momentum = Momentum()
    small, large = (np.ones((2, 1, n, n, n), dtype=np.float32) for n in (3, 5))
    for models in (small, large, small):
        np.testing.assert_array_equal(momentum.carry(models, found(models + 1)).models, models + 1)
    momentum.forget()
    np.testing.assert_array_equal(momentum.carry(small, found(small + 1)).models, small + 1)


def test_what_halves_differ_in_and_give_to_each_other_comes_to_rest() -> None:
    models = np.stack([np.full((1, 3, 3, 3), value, dtype=np.float32) for value in (0.5, 1.5)])
    momentum = Momentum()
    for _ in range(2):
        models = momentum.carry(models, found(models[::-1])).models
    np.testing.assert_allclose(models, 1.0, atol=1e-6)


def test_it_begins_anew_where_a_step_leads_back() -> None:
    momentum, shape = Momentum(), (1, 1, 3, 3, 3)
    carried = []
    for begun, come in ((0.9, 1.0), (1.0, 1.1), (1.4, 1.2), (1.2, 1.3)):
        new = found(np.full(shape, come, dtype=np.float32))
        moved = momentum.carry(np.full(shape, begun, dtype=np.float32), new)
        carried.append(float(moved.models.max()) > come + 1e-6)
    assert carried == [False, True, False, True]


@pytest.mark.parametrize("n_steps", [0, 1, 3])
def test_it_goes_on_from_its_state(n_steps: int) -> None:
    rng = np.random.default_rng(2)
    one, other = Momentum(), Momentum()
    series = rng.random((7, 2, 1, 3, 3, 3)).astype(np.float32)
    for i in range(n_steps):
        one.carry(series[i], found(series[i + 1]))
    other.restore(one.state(), np)
    for i in range(n_steps, 6):
        again = [m.carry(series[i], found(series[i + 1])).models for m in (one, other)]
        np.testing.assert_array_equal(*again)
