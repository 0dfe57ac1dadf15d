"""Tempering: perplexity as asked for, and calibration by two disjoint sets of pixels."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from orienteer.errors import OrienteerError
from orienteer.posterior.evidence import tempered_evidence
from orienteer.posterior.tempering import (
    calibrate,
    even_sample,
    inverse_temperature_for_perplexity,
    overlap_nats,
    perplexity_at,
)


def reference_posterior(
    scores: NDArray[np.float64], log_prior: NDArray[np.float64], beta: NDArray[np.float64] | float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(K, D) posterior and (D,) log-evidence in float64, as the formulas say."""
    x = beta * np.asarray(scores, np.float64) + log_prior[:, None]
    top = x.max(axis=0)
    log_evidence = top + np.log(np.exp(x - top).sum(axis=0))
    return np.exp(x - log_evidence), log_evidence


def uniform(n_rows: int) -> NDArray[np.float64]:
    return np.full(n_rows, -math.log(n_rows))


def line_scores(
    rng: np.random.Generator, n_frames: int, nominal: float, actual: float
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float64]]:
    """Scores of orientations on a line for two sets that measure the position of each frame.

    The scores claim the variance ``nominal``; the measurements have the variance ``actual``.
    """
    place = np.linspace(-12, 12, 1501)
    truth = rng.uniform(-3, 3, n_frames)
    a, b = truth + math.sqrt(actual) * rng.normal(size=(2, n_frames))
    scores_a = -((place[:, None] - a) ** 2) / (2 * nominal)
    scores_b = -((place[:, None] - b) ** 2) / (2 * nominal)
    return scores_a.astype(np.float32), scores_b.astype(np.float32), uniform(len(place))


@pytest.mark.parametrize(("n_rows", "n_frames"), [(1, 1), (7, 3), (333, 70), (1000, 129)])
def test_evidence_and_entropy_agree_with_float64(n_rows: int, n_frames: int) -> None:
    rng = np.random.default_rng(1)
    scores = rng.normal(0, 30, (n_rows, n_frames)).astype(np.float32)
    log_prior = np.log(rng.dirichlet(np.ones(n_rows)))
    beta = rng.uniform(0.01, 1, n_frames).astype(np.float32)
    p, expected = reference_posterior(scores, log_prior, beta)
    found, entropy = tempered_evidence(scores, log_prior, beta)
    np.testing.assert_allclose(found, expected, atol=3e-5)
    np.testing.assert_allclose(entropy, -(p * np.log(np.maximum(p, 1e-300))).sum(axis=0), atol=1e-4)


def test_rows_without_prior_and_frames_without_rows() -> None:
    scores = np.zeros((3, 3), np.float32)
    scores[2, :2] = 1e6, np.nan
    scores[:, 2] = -np.inf
    evidence, entropy = tempered_evidence(scores, np.array([math.log(0.5), math.log(0.5), -np.inf]), 1.0)
    np.testing.assert_allclose(evidence, [0, 0, -np.inf], atol=1e-6)
    np.testing.assert_allclose(np.exp(entropy), [2, 2, 1], rtol=1e-6)


@pytest.mark.parametrize("size", [1e-2, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("target", [2.0, 30.0, 700.0])
def test_the_perplexity_asked_for_is_had_whatever_the_size_of_the_scores(size: float, target: float) -> None:
    rng = np.random.default_rng(2)
    scores = (size * rng.normal(size=(2000, 40))).astype(np.float32)
    beta = inverse_temperature_for_perplexity(scores, uniform(2000), target, limit=1e9)
    p, _ = reference_posterior(scores, uniform(2000), beta)
    entropy = -(p * np.log(np.maximum(p, 1e-300))).sum(axis=0)
    assert math.exp(entropy.mean()) == pytest.approx(target, rel=0.011)


def test_the_limit_holds_and_the_flat_end_is_reached() -> None:
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(500, 20)).astype(np.float32)
    assert inverse_temperature_for_perplexity(scores, uniform(500), 2, limit=0.3) == 0.3
    assert inverse_temperature_for_perplexity(scores, uniform(500), 1e4) < 1e-6
    with pytest.raises(OrienteerError, match="a perplexity of"):
        inverse_temperature_for_perplexity(scores, uniform(500), 0.5)


def test_blank_frames_hardly_change_the_temperature() -> None:
    rng = np.random.default_rng(4)
    scores = rng.normal(0, 20, (5000, 100)).astype(np.float32)
    without = inverse_temperature_for_perplexity(scores, uniform(5000), 50, limit=10)
    scores[:, 7] = 0
    assert inverse_temperature_for_perplexity(scores, uniform(5000), 50, limit=10) == pytest.approx(
        without, rel=0.05
    )


def test_overlap_is_the_sum_of_products_over_the_prior() -> None:
    rng = np.random.default_rng(5)
    a, b = rng.normal(0, 3, (2, 50, 6)).astype(np.float32)
    weights = rng.dirichlet(np.ones(50))
    p_a, _ = reference_posterior(a, np.log(weights), 0.7)
    p_b, _ = reference_posterior(b, np.log(weights), 0.7)
    expected = np.log((p_a * p_b / weights[:, None]).sum(axis=0))
    # A prior that is not normalised is the same prior.
    np.testing.assert_allclose(overlap_nats(a, b, np.log(weights) + 3, 0.7), expected, atol=1e-4)


@pytest.mark.parametrize(("nominal", "actual"), [(0.05, 0.05), (0.01, 0.1), (0.002, 0.2), (0.1, 0.05)])
def test_calibration_finds_nominal_over_actual_variance(nominal: float, actual: float) -> None:
    scores_a, scores_b, log_prior = line_scores(np.random.default_rng(6), 2000, nominal, actual)
    found = calibrate(scores_a, scores_b, log_prior, n_frames=2000, limit=8)
    # The mean of 2 000 squares is known to 3 per cent.
    assert found.inverse_temperature == pytest.approx(nominal / actual, rel=0.1)
    # Two Gaussians of the actual variance over a line of length 24, at best agreement on average.
    assert found.shared_nats == pytest.approx(math.log(24 / math.sqrt(4 * math.pi * actual)) - 0.5, abs=0.05)


def test_a_few_frames_do_not_dominate_the_calibration() -> None:
    scores_a, scores_b, log_prior = line_scores(np.random.default_rng(7), 500, 0.01, 0.05)
    clean = calibrate(scores_a, scores_b, log_prior, n_frames=500)
    for d in range(10):  # their halves contradict by thousands of nats
        scores_b[:, d] = np.roll(scores_b[:, d], 700) * 50
    spoilt = calibrate(scores_a, scores_b, log_prior, n_frames=500)
    assert spoilt.inverse_temperature == pytest.approx(clean.inverse_temperature, rel=0.1)
    assert spoilt.frame_nats[:10].max() < -3


def test_posteriors_narrower_than_the_grid_are_not_sharpened_further() -> None:
    scores = np.where(np.eye(50) > 0, 0.0, -1000.0).astype(np.float32)
    found = calibrate(scores, scores, uniform(50))
    assert found.inverse_temperature < 0.1  # 100 nats between neighbours would be certainty already
    assert found.shared_nats == pytest.approx(math.log(50), abs=0.01)


def test_scores_without_information_share_nothing() -> None:
    a, b = np.random.default_rng(8).normal(0, 5, (2, 400, 200)).astype(np.float32)
    found = calibrate(a, b, uniform(400))
    assert abs(found.shared_nats) < 0.01
    assert found.shared_nats < 3 * found.standard_error
    wrong = overlap_nats(a, b, uniform(400), 1.0)  # as sure as the scores claim: they contradict each other
    assert wrong.mean() < -1


def test_a_constant_in_the_scores_changes_nothing() -> None:
    scores_a, scores_b, log_prior = line_scores(np.random.default_rng(9), 100, 0.01, 0.05)
    scores_a, scores_b = np.round(scores_a, 1), np.round(scores_b, 1)
    plain = calibrate(scores_a, scores_b, log_prior)
    moved = calibrate(scores_a + np.float32(1024), scores_b - np.float32(1024), log_prior)
    assert moved.inverse_temperature == pytest.approx(plain.inverse_temperature, rel=1e-2)
    assert perplexity_at(scores_a + np.float32(1024), log_prior, 0.2) == pytest.approx(
        perplexity_at(scores_a, log_prior, 0.2), rel=1e-4
    )


def test_a_sample_has_frames_from_the_whole_range() -> None:
    chosen = even_sample(10_000, 256)
    assert len(np.unique(chosen)) == 256
    assert chosen[0] < 40
    assert chosen[-1] > 9_960
    np.testing.assert_array_equal(even_sample(5, 256), np.arange(5))


@pytest.mark.gpu
def test_calibration_and_perplexity_are_the_same_on_the_gpu() -> None:
    import cupy

    scores_a, scores_b, log_prior = line_scores(np.random.default_rng(10), 200, 0.01, 0.05)
    on_gpu = [cupy.asarray(x) for x in (scores_a, scores_b, log_prior)]
    expected, found = calibrate(scores_a, scores_b, log_prior), calibrate(*on_gpu)
    assert found.inverse_temperature == pytest.approx(expected.inverse_temperature, rel=0.01)
    np.testing.assert_allclose(found.frame_nats, expected.frame_nats, atol=0.05)
    assert inverse_temperature_for_perplexity(on_gpu[0], on_gpu[2], 20) == pytest.approx(
        inverse_temperature_for_perplexity(scores_a, log_prior, 20), rel=0.02
    )
