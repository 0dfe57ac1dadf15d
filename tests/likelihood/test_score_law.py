"""Scores as a formula of the product: the same numbers, and the same when the store applies it."""

import numpy as np
import pytest

from orienteer.compute.arrays import to_device, to_numpy
from orienteer.likelihood.gaussian import Gaussian
from orienteer.likelihood.negative_binomial import NegativeBinomial
from orienteer.likelihood.poisson import Poisson
from orienteer.posterior.scores import ScoreStore

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def likelihood_of(kind, problem):
    if kind == "poisson":
        return Poisson(problem.pixels)
    if kind == "gaussian":
        return Gaussian(problem.pixels, 0.7)
    return NegativeBinomial(problem.pixels, np.full(problem.pixels.n_pixels, 0.1, np.float32))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ["poisson", "gaussian", "negative binomial"])
@pytest.mark.parametrize("D", [30, 33])
def test_a_store_that_applies_the_law_has_the_posterior_of_the_scores(make_problem, device, kind, D) -> None:
    problem = make_problem(photons=400.0, T=70, D=D)
    likelihood, frames = likelihood_of(kind, problem), problem.frames()
    operand, offsets = likelihood.expand(problem.slices, 1.0)
    product = problem.product(operand)
    scores = likelihood.scores(product, offsets, frames, fluence=1.0)
    law = likelihood.score_law(offsets, frames, 1.0)
    np.testing.assert_array_equal(law.scores(product, np.empty_like(product)), scores)
    law = law._replace(per_row=to_device(law.per_row, device), per_frame=to_device(law.per_frame, device))
    prior, beta = to_device(np.zeros(70, np.float32), device), to_device(np.full(D, 0.5, np.float32), device)
    wanted, found = (ScoreStore(70, D, device) for _ in range(2))
    for part in (slice(0, 40), slice(40, 70)):
        wanted.add(part.start, to_device(scores[part], device), prior[part], beta)
        own = law._replace(per_row=law.per_row[part])
        found.add(part.start, to_device(product[part], device), prior[part], beta, own)
    for name in ("log_evidence", "best_row", "best_score", "entropy"):
        a, b = (to_numpy(getattr(store.finish(), name)) for store in (found, wanted))
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-5)
    a, b = (to_numpy(store.responsibilities(0, 70)) for store in (found, wanted))
    np.testing.assert_allclose(a, b, atol=1e-5 if device == "cpu" else 2e-3)
