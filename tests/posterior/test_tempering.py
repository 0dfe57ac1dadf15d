"""Tempering: perplexity as asked for."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from orienteer.errors import OrienteerError
from orienteer.posterior.evidence import tempered_evidence
from orienteer.posterior.tempering import (
    even_sample,
    inverse_temperature_for_perplexity,
    inverse_temperatures,
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


def line_scores(rng: np.random.Generator, n_frames: int, variance: float) -> NDArray[np.float32]:
    """Scores of 1501 orientations on a line, each frame somewhere near its middle."""
    place = np.linspace(-12, 12, 1501)
    return (-((place[:, None] - rng.uniform(-3, 3, n_frames)) ** 2) / (2 * variance)).astype(np.float32)


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


def test_frames_far_brighter_than_the_others_come_to_the_limit_too() -> None:
    """Where no temperature spreads frames too little, all of them are scored by the likelihood itself."""
    scores = np.random.default_rng(3).normal(size=(500, 20)).astype(np.float32)
    brightness = np.linspace(0.9, 1.1, 20)
    brightness[5] = 3.0
    found = inverse_temperature_for_perplexity(scores, uniform(500), 2, brightness=brightness)
    assert (inverse_temperatures(found, brightness) == 1).all()


def test_frames_brighter_than_all_that_were_sampled_come_to_the_limit_too() -> None:
    """A few frames are scored to find the temperature; the brightest of all are hardly ever among them."""
    scores = np.random.default_rng(3).normal(size=(500, 20)).astype(np.float32)
    brightness = np.random.default_rng(4).exponential(size=20)
    found = inverse_temperature_for_perplexity(scores, uniform(500), 2, brightness=brightness, limit=0.3)
    assert inverse_temperatures(found, np.array([0.01, 1.0, 30.0]), 0.3).tolist() == [0.3] * 3


def test_blank_frames_hardly_change_the_temperature() -> None:
    rng = np.random.default_rng(4)
    scores = rng.normal(0, 20, (5000, 100)).astype(np.float32)
    without = inverse_temperature_for_perplexity(scores, uniform(5000), 50, limit=10)
    scores[:, 7] = 0
    assert inverse_temperature_for_perplexity(scores, uniform(5000), 50, limit=10) == pytest.approx(
        without, rel=0.05
    )


def test_a_constant_in_the_scores_changes_nothing() -> None:
    scores = np.round(line_scores(np.random.default_rng(9), 100, 0.01), 1)
    plain, moved = (perplexity_at(x, uniform(1501), 0.2) for x in (scores, scores + np.float32(1024)))
    assert moved == pytest.approx(plain, rel=1e-4)


def test_a_sample_has_frames_from_the_whole_range() -> None:
    chosen = even_sample(10_000, 256)
    assert len(np.unique(chosen)) == 256
    assert chosen[0] < 40
    assert chosen[-1] > 9_960
    np.testing.assert_array_equal(even_sample(5, 256), np.arange(5))


@pytest.mark.gpu
def test_the_perplexity_is_the_same_on_the_gpu() -> None:
    import cupy

    scores, log_prior = line_scores(np.random.default_rng(10), 200, 0.01), uniform(1501)
    found = inverse_temperature_for_perplexity(cupy.asarray(scores), cupy.asarray(log_prior), 20)
    assert found == pytest.approx(inverse_temperature_for_perplexity(scores, log_prior, 20), rel=0.02)
