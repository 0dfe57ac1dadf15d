"""Steps that go on with a share of the one before come sooner to the same end."""

from dataclasses import replace

import numpy as np
import pytest

from orienteer.reconstruction.model.compression import Compressed
from orienteer.reconstruction.model.momentum import Momentum


def found(models: np.ndarray) -> Compressed:
    return Compressed(models, (), np.ones(3), np.ones(models.shape[2:]))


def evidence(models: np.ndarray, target: np.ndarray, rate: np.ndarray) -> float:
    """That of which steps of this rate are those of EM."""
    return -float((rate * (models - target) ** 2).sum())


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
            new = momentum.carry(new, evidence(models, target, rate))
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
    for value in (1.0, 0.5, 0.1, 0.0):
        assert momentum.carry(found(np.full(shape, value, dtype=np.float32)), -value).models.min() >= 0


def test_the_first_step_and_one_after_a_change_of_size_are_as_they_were_found() -> None:
    momentum = Momentum()
    small, large = (np.ones((2, 1, n, n, n), dtype=np.float32) for n in (3, 5))
    for models in (small, large, small):
        new = found(models + 1)
        assert momentum.carry(new, 0.0) is new
    momentum.forget()
    assert momentum.carry(replace(new), 0.0).models is new.models


def test_it_begins_anew_where_the_evidence_falls() -> None:
    momentum = Momentum()
    rising = [found(np.full((1, 1, 3, 3, 3), value, dtype=np.float32)) for value in (1.0, 1.1, 1.2, 1.3)]
    carried = [
        momentum.carry(each, nats).models.max() > each.models.max()
        for each, nats in zip(rising, (-3.0, -2.0, -2.5, -2.4), strict=True)
    ]
    assert carried == [False, True, False, True]


@pytest.mark.parametrize("n_steps", [0, 1, 3])
def test_it_goes_on_from_its_state(n_steps: int) -> None:
    rng = np.random.default_rng(2)
    one, other = Momentum(), Momentum()
    series = rng.random((6, 2, 1, 3, 3, 3)).astype(np.float32)
    for i in range(n_steps):
        one.carry(found(series[i]), float(i))
    other.restore(one.state(), np)
    for i in range(n_steps, 6):
        again = [m.carry(found(series[i]), float(i)).models for m in (one, other)]
        np.testing.assert_array_equal(*again)
