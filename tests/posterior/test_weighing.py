"""What frames deposit, in one pass: against the responsibilities and scores of the same store."""

import numpy as np
import pytest

from orienteer.likelihood.base import MergeLaw
from orienteer.posterior.scores import ScoreStore


@pytest.mark.gpu
@pytest.mark.parametrize("slope", [0.0, 0.8])
@pytest.mark.parametrize(("n_rows", "n_frames"), [(1, 1), (37, 9), (300, 1003), (64, 512)])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_one_pass_gives_what_tables_of_responsibilities_give(slope, n_rows, n_frames, is_weighted) -> None:
    import cupy

    rng = np.random.default_rng(n_rows + n_frames)
    scores = cupy.asarray(-rng.gamma(2.0, 20.0, (n_rows, n_frames)).astype(np.float32))
    log_prior = cupy.asarray(rng.normal(-5, 1, n_rows).astype(np.float32))
    beta = cupy.asarray(rng.uniform(0.05, 0.3, n_frames).astype(np.float32))
    store = ScoreStore(n_rows, n_frames, "cuda")
    step = 64
    for first in range(0, n_rows, step):
        store.add(first, scores[first : first + step], log_prior[first : first + step], beta)
    inverse, row_factor = (cupy.asarray(rng.uniform(0.5, 2, n_frames)) for _ in range(2))
    weight = cupy.asarray(rng.uniform(0, 1, n_frames).astype(np.float32)) if is_weighted else None
    counted = cupy.asarray(rng.uniform(size=n_frames) < 0.5) if is_weighted else None
    offsets, signal = (cupy.asarray(rng.uniform(50, 90, n_rows)) for _ in range(2))
    law = MergeLaw(row_factor, slope, inverse if slope else None, 14.0)
    for first in range(0, n_rows, step):
        part = slice(first, min(first + step, n_rows))
        found = store.weigh(first, part.stop, law, offsets[part], signal[part], weight, counted)
        p = store.responsibilities(first, part.stop).astype(np.float64)
        each = p if weight is None else p * weight
        wanted = each
        if slope:
            square = offsets[part][:, None] + slope * store.scores(first, part.stop)
            # What is not kept has no score.
            square = cupy.where(p > 0, cupy.maximum(square, 0), 0)
            wanted = each * cupy.sqrt(square * inverse)
        numerator = found.numerator.astype(np.float64) * found.factor
        assert numerator.shape == wanted.shape
        assert float(abs(numerator - wanted).max()) < 6e-4 * max(float(wanted.max()), 1e-30)
        np.testing.assert_allclose(found.row.get(), (each @ row_factor).get(), rtol=2e-5, atol=1e-7)
        np.testing.assert_allclose(found.expected.get(), (signal[part] @ p).get(), rtol=2e-5, atol=1e-5)
        if counted is not None:
            mass = p[:, counted].sum(axis=1)
            np.testing.assert_allclose(found.mass.get(), mass.get(), rtol=2e-5, atol=1e-7)
