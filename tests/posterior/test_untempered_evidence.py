"""How well all poses together explain a frame, told from a tempered posterior."""

import numpy as np
import pytest
from scipy.special import logsumexp

from orienteer.posterior.posterior import Posterior
from orienteer.posterior.scores import ScoreStore


def posterior_of(scores: np.ndarray, log_prior: np.ndarray, beta: np.ndarray) -> Posterior:
    store = ScoreStore(len(scores), scores.shape[1], "cpu", 0.999)
    store.add(0, scores.copy(), log_prior, beta)
    return store.finish()


def even(K: int) -> np.ndarray:
    return np.full(K, -np.log(K), dtype=np.float32)


def test_without_temperature_it_is_the_evidence() -> None:
    scores = np.random.default_rng(1).normal(0, 3, (200, 7)).astype(np.float32)
    one = np.ones(7, dtype=np.float32)
    found = posterior_of(scores, even(200), one).untempered_evidence(one, even(200))
    np.testing.assert_allclose(found, logsumexp(scores.astype(float), axis=0) - np.log(200), rtol=1e-5)


@pytest.mark.parametrize("inverse", [0.9, 0.3, 0.02])
def test_with_temperature_it_is_the_bound_of_variational_inference(inverse: float) -> None:
    scores = np.random.default_rng(2).normal(0, 20, (300, 5)).astype(np.float32)
    beta = np.full(5, inverse, dtype=np.float32)
    found = posterior_of(scores, even(300), beta).untempered_evidence(beta, even(300))
    p = np.exp(inverse * scores.astype(float) - logsumexp(inverse * scores.astype(float), axis=0))
    bound = (p * (scores - np.log(300) - np.log(np.maximum(p, 1e-300)))).sum(axis=0)
    np.testing.assert_allclose(found, bound, rtol=1e-4)
    assert (found <= logsumexp(scores.astype(float), axis=0) - np.log(300) + 1e-3).all()


def test_noise_of_a_model_raises_the_best_score_but_not_the_evidence() -> None:
    # Frames of photons without any structure, and a model that is even, or has noise of its own.
    rng = np.random.default_rng(3)
    K, P, D = 2000, 400, 300
    frames = rng.poisson(0.25, (D, P)).astype(np.float32)
    best, evidence = [], []
    for contrast in (0.0, 0.3):
        slices = 0.25 * np.maximum(1 + contrast * rng.normal(size=(K, P)), 0.05)
        scores = (np.log(slices) @ frames.T - slices.sum(axis=1)[:, None]).astype(np.float32)
        one = np.ones(D, dtype=np.float32)
        posterior = posterior_of(scores, even(K), one)
        best.append(posterior.best_score.mean())
        evidence.append(posterior.untempered_evidence(one, even(K)).mean())
    assert best[1] > best[0] + 3
    assert evidence[1] < evidence[0]


def test_a_frame_that_no_row_explains_has_none() -> None:
    scores = np.full((20, 3), -np.inf, dtype=np.float32)
    scores[:, 1:] = 0
    for inverse in (1.0, 0.5):
        beta = np.full(3, inverse, dtype=np.float32)
        found = posterior_of(scores, even(20), beta).untempered_evidence(beta, even(20))
        assert found[0] == -np.inf
        np.testing.assert_allclose(found[1:], 0, atol=1e-5)


@pytest.mark.parametrize("inverse", [0.3, 0.03])
def test_a_class_of_junk_as_likely_as_a_pose_does_not_sink_the_frame(inverse: float) -> None:
    # One row of junk that is as frequent as all poses together, and fits about as well as each of them.
    rng = np.random.default_rng(4)
    scores = rng.normal(0, 0.2 / inverse, (1001, 6)).astype(np.float32)
    log_prior = np.append(np.full(1000, -np.log(2000)), -np.log(2)).astype(np.float32)
    beta = np.full(6, inverse, dtype=np.float32)
    posterior = posterior_of(scores, log_prior, beta)
    truth = logsumexp(scores.astype(float) + log_prior[:, None], axis=0)
    found = posterior.untempered_evidence(beta, log_prior, n_junk=1)
    assert (posterior.best_row == 1000).any()
    assert np.abs(found - truth).max() < 1 / inverse
