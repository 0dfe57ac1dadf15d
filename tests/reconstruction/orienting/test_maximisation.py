"""Frames that are weighed in one pass are merged as those whose responsibilities are seen."""

import numpy as np
import pytest

from orienteer.reconstruction.benchmark import made_up
from orienteer.reconstruction.orienting import expectation, maximisation


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["poisson", "gaussian"])
def test_weighing_in_one_pass_leaves_the_same_model_and_fluences(kind, monkeypatch) -> None:
    problem, truth, _ = made_up(300, 400, 4, kind, "cuda", 1, 800.0)
    beta = problem.inverse_temperature(truth, 5.0)
    found, _ = problem.iterate(truth, beta)
    fluence = problem.fluence
    monkeypatch.setattr(maximisation, "_law_of_batch", lambda *_: None)
    problem.fluence = np.ones(300)
    wanted, _ = problem.iterate(truth, beta)
    np.testing.assert_allclose(found.get(), wanted.get(), atol=2e-3 * float(wanted.max()))
    np.testing.assert_allclose(fluence, problem.fluence, rtol=1e-4)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["poisson", "gaussian"])
def test_one_term_changes_posteriors_only_where_it_is_good_enough(kind, monkeypatch) -> None:
    problem, truth, _ = made_up(300, 400, 4, kind, "cuda", 1, 5000.0)
    asked = []
    decide = expectation._one_term_is_enough

    def noted(*arguments) -> bool:
        asked.append(decide(*arguments))
        return asked[-1]

    monkeypatch.setattr(expectation, "_one_term_is_enough", noted)
    hot, cold = 1e-4, 1.0
    assert problem.plan.precision == "split"
    _, spread = problem.iterate(truth, hot)
    problem.fluence = np.ones(300)
    problem.iterate(truth, cold)
    assert asked == [True, False]
    monkeypatch.setattr(expectation, "_one_term_is_enough", lambda *_: False)
    problem.fluence = np.ones(300)
    assert problem.iterate(truth, hot)[1] == pytest.approx(spread, rel=1e-3)
