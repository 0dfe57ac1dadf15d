"""Voxels held out lie in whole speckles, and tell a right density from a wrong one."""

import numpy as np
import pytest

from orienteer.orientation.point_group import PointGroup
from orienteer.phase.data import phasing_data
from orienteer.phase.half_grid import density_of, frequencies
from orienteer.phase.held_out import choose_held_out, free_log_likelihood, log_likelihood
from orienteer.phase.settings import PhaseSettings


def test_they_are_few_measured_and_spare_the_centre(body) -> None:
    data = phasing_data(body(hole=1.0).intensity, PhaseSettings(held_out=0.05), device="cpu")
    assert data.held_out.sum() == pytest.approx(0.05 * data.measured.sum(), rel=0.05)
    assert not (data.held_out & ~data.measured).any()
    whole, half = frequencies(data.n)
    square = whole[:, None, None] ** 2 + whole[:, None] ** 2 + half**2
    assert np.sqrt(square[data.held_out].min()) > 3 * data.box_A / data.diameter_A


def test_neighbours_go_out_together_and_so_do_mates() -> None:
    n = 36
    held = choose_held_out(np.ones((n, n, n // 2 + 1), bool), speckle=3.0, share=0.05, seed=1)
    both = (held & np.roll(held, 1, axis=0)).sum() / held.sum()
    assert both > 0.4  # by chance 0.05
    plane = held[:, :, 0]  # q_z = 0 holds both mates
    assert (plane == np.roll(plane[::-1, ::-1], (1, 1), (0, 1))).all()


def test_equivalent_voxels_go_out_together() -> None:
    n, group = 36, PointGroup("C4")
    held = choose_held_out(np.ones((n, n, n // 2 + 1), bool), 3.0, 0.05, 1, group)
    quarter_turn = np.roll(held.transpose(1, 0, 2)[::-1], 1, axis=0)
    assert (held == quarter_turn).mean() > 0.999


def test_the_same_seed_holds_out_the_same() -> None:
    measured = np.ones((24, 24, 13), bool)
    first, again, other = (choose_held_out(measured, 3.0, 0.05, seed) for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


def test_the_true_density_foretells_them_and_others_do_not(body) -> None:
    made = body(noise=0.1)
    data = phasing_data(made.intensity, device="cpu")
    rng = np.random.default_rng(0)
    right = density_of(np.where(data.measured, data.amplitudes, 0) * 1.0)
    noise = rng.normal(size=right.shape) * right.std()
    trial = np.stack([right, right + 0.3 * noise, right + noise]).astype(np.float32)
    score = free_log_likelihood(trial, np.zeros(3, np.float32), data)
    assert (np.diff(score) < 0).all()


def test_the_likelihood_is_the_same_for_any_unit_of_the_intensity(body) -> None:
    made = body(noise=0.1)
    scores = []
    for factor in (1.0, 1e-6, 1e6):
        scaled = made.intensity.with_values((made.intensity.values * factor).astype(np.float32))
        data = phasing_data(scaled, device="cpu")
        density = np.random.default_rng(1).random((1, data.n, data.n, data.n), dtype=np.float32)
        density *= np.float32(np.sqrt(factor) * 1e-2)
        scores.append(log_likelihood(density, np.zeros(1, np.float32), data, data.measured)[0])
    assert scores == pytest.approx([scores[0]] * 3, rel=1e-4)


def test_a_background_is_part_of_what_is_foretold(body) -> None:
    data = phasing_data(body(background=0.05).intensity, device="cpu")
    flat = 0.05 * (phasing_data(body().intensity, device="cpu").amplitudes[data.measured] ** 2).mean()
    right = density_of(np.sqrt(np.maximum(data.amplitudes**2 - flat, 0)) * data.measured).astype(np.float32)
    with_it, without = free_log_likelihood(np.stack([right] * 2), np.array([flat, 0], np.float32), data)
    assert with_it > without + 0.5
