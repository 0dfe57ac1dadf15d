"""Voxels held out lie in whole speckles, and tell a right density from a wrong one."""

from dataclasses import replace

import numpy as np
import pytest

from orienteer.orientation.point_group import PointGroup
from orienteer.phase.conclusion import shell_error
from orienteer.phase.data import phasing_data
from orienteer.phase.half_grid import density_of, frequencies, half_grid_shells
from orienteer.phase.held_out import (
    Predicted,
    choose_held_out,
    free_log_likelihood,
    joined,
    log_likelihood,
    predict,
)
from orienteer.phase.result import KNOWS_NOTHING
from orienteer.phase.settings import PhaseSettings


def test_they_are_few_measured_and_spare_the_centre(body) -> None:
    data = phasing_data(body(hole=1.0).intensity, PhaseSettings(held_out=0.05), device="cpu")
    assert data.held_out.sum() == pytest.approx(0.05 * data.measured.sum(), rel=0.05)
    assert data.choosing.sum() == pytest.approx(data.judging.sum(), rel=0.05)
    assert not (data.choosing & data.judging).any()
    assert not (data.held_out & ~data.measured).any()
    whole, half = frequencies(data.n)
    square = whole[:, None, None] ** 2 + whole[:, None] ** 2 + half**2
    assert np.sqrt(square[data.held_out].min()) > 3 * data.box_A / data.diameter_A


def test_neighbours_go_out_together_and_so_do_mates() -> None:
    n = 36
    for held in choose_held_out(np.ones((n, n, n // 2 + 1), bool), speckle=3.0, share=0.1, seed=1):
        both = (held & np.roll(held, 1, axis=0)).sum() / held.sum()
        assert both > 0.4  # by chance 0.05
        plane = held[:, :, 0]  # q_z = 0 holds both mates
        assert (plane == np.roll(plane[::-1, ::-1], (1, 1), (0, 1))).all()


def test_equivalent_voxels_go_out_together() -> None:
    n, group = 36, PointGroup("C4")
    for held in choose_held_out(np.ones((n, n, n // 2 + 1), bool), 3.0, 0.1, 1, group):
        quarter_turn = np.roll(held.transpose(1, 0, 2)[::-1], 1, axis=0)
        assert (held == quarter_turn).mean() > 0.999


def test_the_same_seed_holds_out_the_same() -> None:
    measured = np.ones((24, 24, 13), bool)
    first, again, other = (choose_held_out(measured, 3.0, 0.1, seed)[0] for seed in (1, 1, 2))
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
    data = phasing_data(body(background=0.1).intensity, device="cpu")
    flat = 0.1 * (phasing_data(body().intensity, device="cpu").amplitudes[data.measured] ** 2).mean()
    right = density_of(np.sqrt(np.maximum(data.amplitudes**2 - flat, 0)) * data.measured).astype(np.float32)
    with_it, without = free_log_likelihood(np.stack([right] * 2), np.array([flat, 0], np.float32), data)
    assert with_it > without + 0.5


@pytest.mark.filterwarnings("error")
def test_a_single_voxel_foretells_the_mean_of_each_shell_and_no_more(body) -> None:
    """Its moduli are the same everywhere but for rounding, which is no contrast to make a slope of."""
    data = phasing_data(body(noise=0.1).intensity, device="cpu")
    densities = np.zeros((30, data.n, data.n, data.n), np.float32)
    for number in range(1, 30):  # the first shows nothing at all
        densities[number, number % 7, 3, number % 5] = 0.1 * number
    scores = free_log_likelihood(densities, np.zeros(30, np.float32), data)
    np.testing.assert_allclose(scores, scores[0], rtol=1e-6)


@pytest.mark.parametrize("noise", [0.0, 0.4])
def test_a_random_density_foretells_hardly_less_than_the_mean_of_each_shell(body, noise) -> None:
    """Which is the yardstick for densities that know nothing: an error of about 0.5."""
    data = phasing_data(body(noise=noise).intensity, device="cpu")
    densities = np.random.default_rng(3).random((4, data.n, data.n, data.n), dtype=np.float32)
    scores = log_likelihood(densities, np.zeros(4, np.float32), data, data.judging)
    errors = np.exp(-scores - 0.5)
    assert errors == pytest.approx([0.5] * 4, abs=0.03)
    assert errors == pytest.approx([shell_error(data)] * 4, rel=0.06)
    assert (errors > KNOWS_NOTHING * shell_error(data)).all()


def test_voxels_that_judge_have_no_part_in_the_choice(body) -> None:
    """Whatever happens at them, the score that chooses stays, and the other way round."""
    made = body(noise=0.1)
    data = phasing_data(made.intensity, device="cpu")
    density = density_of(np.where(data.measured, data.amplitudes, 0) * 1.0).astype(np.float32)[None]
    none = np.zeros(1, np.float32)
    others = np.random.default_rng(1).permutation(data.amplitudes[data.judging])
    amplitudes = data.amplitudes.copy()
    amplitudes[data.judging] = others
    spoilt = replace(data, amplitudes=amplitudes)
    assert free_log_likelihood(density, none, spoilt) == free_log_likelihood(density, none, data)
    judged = [log_likelihood(density, none, each, data.judging)[0] for each in (data, spoilt)]
    assert judged[1] < judged[0] - 0.5


@pytest.mark.parametrize("kept", [1.0, 0.4])
def test_a_density_is_judged_by_where_it_is_bright_not_by_the_contrast_that_a_filter_left(body, kept) -> None:
    """Reconstructions draw noisy shells to their mean; the right density is still the right one."""
    data = phasing_data(body().intensity, device="cpu")
    right = density_of(data.amplitudes * data.measured).astype(np.float32)[None]
    shell = half_grid_shells(data.n)
    sums, number = (
        np.bincount(shell[data.measured], weights) for weights in (data.amplitudes[data.measured], None)
    )
    level = (sums / np.maximum(number, 1))[np.clip(shell, 0, len(sums) - 1)]
    drawn = level + kept * (data.amplitudes - level)
    filtered = replace(data, amplitudes=np.where(data.measured, drawn, 0).astype(np.float32))
    none = np.zeros(1, np.float32)
    found = log_likelihood(right, none, filtered, data.judging)[0]
    other = np.random.default_rng(2).permutation(right.ravel()).reshape(right.shape)
    assert found > log_likelihood(other, none, filtered, data.judging)[0] + 0.5


def test_the_standard_error_of_a_difference_is_its_scatter_over_repeated_speckles() -> None:
    """Voxels of a speckle say the same; taken as independent they would make the error too small."""
    rng = np.random.default_rng(0)
    n_speckles, voxels, draws = 60, 7, 400
    speckle = np.repeat(np.arange(n_speckles), voxels)
    means, errors = [], []
    for _ in range(draws):
        own = rng.normal(0.3, 1.0, n_speckles)[speckle]  # how much worse the second density is
        common = rng.normal(0, 5.0, n_speckles * voxels)  # what makes a voxel hard for both of them
        found = Predicted(np.stack([common, common - own]), np.full(len(speckle), 2.0), speckle)
        below, error = found.below(0)
        assert below[0] == error[0] == 0
        means.append(below[1])
        errors.append(error[1])
    assert np.mean(means) == pytest.approx(0.3, abs=0.03)
    assert np.mean(errors) == pytest.approx(np.std(means), rel=0.1)


def test_the_speckles_of_voxels_are_about_as_many_as_there_are(body) -> None:
    data = phasing_data(body().intensity, device="cpu")
    density = np.zeros((1, data.n, data.n, data.n), np.float32)
    found = predict(density, np.zeros(1, np.float32), data, data.measured)
    width = data.box_A / data.diameter_A
    expected = data.measured.sum() / width**3
    assert expected < len(np.unique(found.speckle)) < 1.5 * expected


def test_copies_of_a_symmetric_particle_tell_nothing_more() -> None:
    rng = np.random.default_rng(4)
    speckle, by_voxel = np.repeat(np.arange(40), 5), rng.normal(size=(2, 200))
    once = Predicted(by_voxel, np.ones(200), speckle)
    places = np.concatenate([speckle + 40 * copy for copy in range(12)])
    copied = Predicted(np.tile(by_voxel, 12), np.ones(2400), places, n_copies=12)
    np.testing.assert_allclose(copied.below(0), once.below(0), rtol=1e-12)


def test_means_of_speckles_tell_as_much_as_their_voxels() -> None:
    rng = np.random.default_rng(2)
    speckle = rng.integers(0, 12, 200)
    voxels = Predicted(rng.normal(size=(3, 200)), rng.integers(1, 3, 200).astype(float), speckle, n_copies=4)
    fewer = voxels.by_speckle()
    assert fewer.by_voxel.shape == (3, 12)
    np.testing.assert_allclose(fewer.mean, voxels.mean)
    np.testing.assert_allclose(fewer.below(1), voxels.below(1))
    np.testing.assert_allclose(voxels.by_speckle(slice(2, 3)).mean, voxels.mean[2:])
    both = joined([voxels.by_speckle(slice(1, 2)), voxels.by_speckle(slice(0, 1))], 4)
    np.testing.assert_allclose(both.below(0)[1][1], voxels.below(1)[1][0])
