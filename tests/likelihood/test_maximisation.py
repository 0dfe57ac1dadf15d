"""Scores, fluences, backgrounds and merges are expectation maximisation: the likelihood never falls."""

from dataclasses import replace

import numpy as np
import pytest

from orienteer.likelihood.background import signal_share
from orienteer.likelihood.fluence import expected_photons, normalise_fluence, update_fluence
from orienteer.likelihood.negative_binomial import NegativeBinomial
from orienteer.likelihood.poisson import Poisson
from orienteer.likelihood.product import product_of


def softmax(scores):
    """(responsibilities, log evidence) over rows of equal prior weight."""
    top = scores.max(0)
    p = np.exp(scores - top)
    return (p / p.sum(0)).astype(np.float32), top + np.log(p.sum(0) / len(scores))


def start(problem, seed=5):
    """A model that knows the radial mean and a little noise."""
    rng = np.random.default_rng(seed)
    radial = problem.pixels.reference / problem.pixels.correction
    return (radial * rng.uniform(0.7, 1.3, problem.slices.shape)).astype(np.float32)


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_poisson_with_fluences(make_problem, layout) -> None:
    problem = make_problem(photons=500.0, T=5, D=150, fluence_spread=0.4)
    likelihood, frames = Poisson(problem.pixels), problem.frames(layout)
    product = product_of(frames)
    model, fluence = start(problem), np.ones(150)
    S, history = problem.pixels.n_scored, []
    for _ in range(25):
        slices = np.ascontiguousarray(model.T) if product.by_pixel else model
        operand, offsets = likelihood.expand(slices, by_pixel=product.by_pixel)
        scores = likelihood.scores(product.scores(operand), offsets, frames, fluence=fluence).astype(float)
        responsibilities, evidence = softmax(scores)
        history.append((evidence + likelihood.frame_constant(frames, fluence)).mean())
        fluence = update_fluence(frames.scored_photons, expected_photons(responsibilities, offsets))
        fluence, mean = normalise_fluence(np.maximum(fluence, 1e-3))
        weights = likelihood.merge_weights(responsibilities, frames, fluence=fluence)
        merged = product.merge(weights.numerator)
        merged = merged.T if product.by_pixel else merged
        used = weights.row > 0
        model[used] = (merged / np.maximum(weights.row[:, None], 1e-9) / problem.pixels.correction)[used]
        # Fluence and model are each at their best given the other, as long as scored pixels alone decide.
        assert np.isfinite(model[:, :S]).all()
    assert (np.diff(history) > -1e-3).all()
    assert history[-1] > history[0] + 10.0
    # Rows that share no voxels have each a brightness of their own, so fluences compare within a row.
    row = np.where(np.arange(150) > 0, responsibilities.argmax(0), -1)
    for k in range(5):
        found, truth = fluence[row == k], problem.fluence[row == k]
        assert len(found) < 10 or np.corrcoef(found, truth)[0, 1] > 0.95
    assert np.bincount(row[1:]).max() >= 10
    assert mean == pytest.approx(1.0, abs=0.05)


def test_poisson_over_a_background(make_problem) -> None:
    problem = make_problem(photons=500.0, T=5, D=150, background=0.5, fluence_spread=0.0)
    likelihood = Poisson(problem.pixels)
    frames = problem.frames()
    product = product_of(frames)
    model, history = start(problem), []
    for _ in range(25):
        operand, offsets = likelihood.expand(model)
        scores = likelihood.scores(product.scores(operand), offsets, frames).astype(float)
        responsibilities, evidence = softmax(scores)
        lit = np.arange(150) > 0  # the dark frame is flat by decree, not by likelihood
        history.append((evidence + likelihood.frame_constant(frames))[lit].mean())
        responsibilities[:, ~lit] = 0.0
        weights = likelihood.merge_weights(responsibilities, frames)
        share = signal_share(model, problem.pixels, 1.0)
        merged = product.merge(weights.numerator)
        rows = np.maximum(weights.row[:, None], 1e-9)
        model = (share * merged / rows / problem.pixels.correction).astype(np.float32)
    assert (np.diff(history) > -1e-3).all()
    assert history[-1] > history[0] + 10.0


def test_negative_binomial_in_groups_of_fluence(make_problem) -> None:
    problem = make_problem(photons=2000.0, T=5, D=120, fluence_spread=0.0)
    fluence = np.where(np.arange(120) < 60, 0.5, 1.5)
    rng = np.random.default_rng(2)
    expected = fluence[:, None] * problem.slices[problem.rows] * problem.pixels.correction
    counts = rng.poisson(expected * rng.gamma(5.0, 0.2, expected.shape))
    problem = replace(problem, counts=counts)
    likelihood = NegativeBinomial(problem.pixels, np.full(problem.pixels.n_pixels, 0.2, np.float32))
    frames = problem.frames()
    groups = [(0.5, frames[:60]), (1.5, frames[60:])]
    model, history = start(problem), []
    for _ in range(20):
        above, below, evidences, rows = 0.0, 0.0, [], []
        for phi, group in groups:
            product = product_of(group)
            operand, offsets = likelihood.expand(model, phi)
            scores = likelihood.scores(product.scores(operand), offsets, group, fluence=phi).astype(float)
            responsibilities, evidence = softmax(scores)
            evidences.append(evidence + likelihood.frame_constant(group, phi))
            rows.append(scores.argmax(0))
            weights = likelihood.merge_weights(responsibilities, group, fluence=phi)
            above = above + product.merge(weights.numerator)
            below = below + weights.row[:, None] * problem.pixels.correction
        history.append(np.concatenate(evidences).mean())
        model = np.where(below > 1e-9, above / np.maximum(below, 1e-9), model).astype(np.float32)
    assert (np.diff(history) > -1e-2).all()
    assert history[-1] > history[0] + 10.0
    # Frames of one true row end up together: rows are found up to their names.
    found = np.concatenate(rows)
    agree = sum(np.bincount(found[problem.rows == k], minlength=5).max() for k in np.unique(problem.rows))
    assert agree >= 100
