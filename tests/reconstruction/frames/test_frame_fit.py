"""Likelihoods of frames at their poses, against SciPy; and who is told from whom."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import nbinom, poisson

from orienteer.compute.arrays import to_device, to_numpy
from orienteer.reconstruction.frames.frame_fit import (
    DenseFrames,
    fit_frames,
    log_mean,
    log_probability,
    log_probability_of_anything,
    particle_probability,
)
from orienteer.simulation.truth import ShotKind

RNG = np.random.default_rng(3)
SHELL = np.repeat(np.arange(10), 40)
# Falls from 4 photons per pixel to 0.1.
REFERENCE = (4.0 * np.exp(-0.4 * SHELL)).astype(np.float32)


def speckles(n: int, seed: int) -> np.ndarray:
    """Fully developed: exponential with mean 1."""
    return np.random.default_rng(seed).exponential(size=(n, len(SHELL)))


@pytest.mark.parametrize("dispersion", [0.02, 0.5, 1.0])
def test_probabilities_are_those_of_the_negative_binomial(dispersion: float) -> None:
    expected = RNG.gamma(1.0, 2.0, size=(5, 30)) + 0.01
    counts = RNG.poisson(expected)
    r = 1 / dispersion
    wanted = nbinom.logpmf(counts, r, r / (r + expected)) + gammaln(counts + 1.0)
    found = log_probability(counts.astype(np.float32), expected, dispersion)
    np.testing.assert_allclose(found, wanted.sum(axis=1), rtol=1e-9)


def test_without_dispersion_they_are_those_of_poisson_and_hidden_pixels_do_not_count() -> None:
    expected = RNG.gamma(1.0, 2.0, size=(5, 30)) + 0.01
    counts = RNG.poisson(expected).astype(np.float32)
    expected[:, :7], counts[:, :7] = 0.0, 0.0
    seen = counts[:, 7:].astype(np.float64)
    wanted = poisson.logpmf(seen, expected[:, 7:]) + gammaln(seen + 1.0)
    np.testing.assert_allclose(log_probability(counts, expected, 0.0), wanted.sum(axis=1), rtol=1e-9)


def log_rising(K: np.ndarray, e: np.ndarray) -> np.ndarray:
    """sum_{i<K} ln(1 + i e), by gamma functions where these are exact."""
    small = K * e < 1e-3
    r = 1.0 / np.where(small, 1.0, e)
    by_gamma = gammaln(K + r) - gammaln(r) - K * np.log(r)
    pairs = K * (K - 1.0) / 2.0
    by_series = e * pairs * (1.0 - e * (2.0 * K - 1.0) / 6.0 + e * e * pairs / 3.0)
    return np.where(small, by_series, by_gamma)


def plain_log_probability(counts: np.ndarray, expected: np.ndarray, dispersion: np.ndarray) -> np.ndarray:
    """All pixels at once, by gamma functions where these are exact."""
    K, lam = counts.astype(np.float64), expected.astype(np.float64)
    e = np.broadcast_to(dispersion, K.shape)
    y = e * lam
    offset = lam * np.where(y > 1e-6, np.log1p(y) / np.where(y > 1e-6, y, 1.0), 1.0 - y / 2)
    lit = (K > 0) & (lam > 0)
    terms = np.zeros_like(K)
    terms[lit] = K[lit] * (np.log(lam[lit]) - np.log1p(y[lit])) + log_rising(K[lit], e[lit])
    return (terms - offset).sum(axis=1)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("each", [False, True], ids=["one dispersion per pixel", "one per frame and pixel"])
def test_both_twins_are_right_for_faint_and_bright_pixels_and_any_dispersion(each: bool, device: str) -> None:
    """From a series to logarithms, from products to gamma functions, and across the limits between them."""
    expected = 10 ** RNG.uniform(-6, 5, size=(8, 400)).astype(np.float32)
    counts = RNG.poisson(expected).astype(np.float32)
    expected[:, :20] = counts[:, :20] = 0.0
    dispersion = 10 ** RNG.uniform(-9, 0.5, size=(8, 400) if each else 400)
    dispersion[..., 20:40] = 0.0
    wanted = plain_log_probability(counts, expected, dispersion)
    found = to_numpy(log_probability(*(to_device(x, device) for x in (counts, expected, dispersion))))
    size = np.abs(counts * np.log(np.maximum(expected, 1e-30))).sum(axis=1)
    assert (np.abs(found - wanted) / size).max() < 1e-10


def test_the_right_speckles_explain_a_frame_better_than_anything_and_the_wrong_ones_worse() -> None:
    model = REFERENCE * speckles(50, seed=1)
    own = RNG.poisson(model).astype(np.float32)
    other = RNG.poisson(REFERENCE * speckles(50, seed=2)).astype(np.float32)
    for counts, is_right in ((own, True), (other, False)):
        anything = log_probability_of_anything(DenseFrames(counts, None), REFERENCE, None, SHELL)
        odds = log_probability(counts, np.maximum(model, 1e-3 * REFERENCE), 0.05) - anything
        assert ((odds > 10) == is_right).all()


def test_a_frame_of_another_size_is_anything_at_once() -> None:
    smaller = REFERENCE[::-1].copy()
    counts = RNG.poisson(smaller * speckles(20, seed=4)).astype(np.float32)
    model = REFERENCE * speckles(20, seed=5)
    odds = log_probability(counts, np.maximum(model, 1e-3 * REFERENCE), 0.05)
    odds = odds - log_probability_of_anything(DenseFrames(counts, None), REFERENCE, None, SHELL)
    assert (odds < -100).all()


def test_background_alone_is_no_particle(simulated: Any, tiny: Any, tmp_path: Path) -> None:
    n_pixels, behind = tiny.detector.n_pixels, 300
    np.save(tmp_path / "b.npy", np.full(n_pixels, behind / n_pixels))
    data = simulated(
        tiny.particle, 14, 65.0, frames=80, photons_per_frame=500, empty_fraction=0.5,
        background_photons=behind,
    )  # fmt: skip
    emc = data.emc(level=4, background_file=str(tmp_path / "b.npy"))
    data.take_truth(emc)
    emc.step()
    work, table = emc.work, emc.table
    dispersion = np.full(work.n_scored, 0.02)
    fit = fit_frames(
        work, emc.models, table.quaternion, table.model, emc.fluence, dispersion, fits_fluence=True
    )
    is_hit = np.asarray(data.patterns.columns["truth_kind"]) == ShotKind.HIT
    assert (fit.log_signal_odds[is_hit] > 30).mean() > 0.9
    assert (fit.log_signal_odds[~is_hit] < 3).mean() > 0.9


def test_without_a_background_no_frame_is_empty(tiny: Any) -> None:
    emc = tiny.emc(level=4)
    dispersion = np.full(emc.work.n_scored, 0.1)
    fit = fit_frames(
        emc.work, emc.models, emc.table.quaternion, emc.table.model, emc.fluence, dispersion,
        fits_fluence=False,
    )  # fmt: skip
    assert np.isposinf(fit.log_signal_odds).all()


def test_the_probability_of_something_else_is_the_mean_of_its_forms() -> None:
    """The likeliest of several would be likelier by chance alone, most of all for faint frames."""
    forms = np.log(RNG.uniform(0.1, 1.0, (3, 5)))
    np.testing.assert_allclose(log_mean(list(forms)), np.log(np.exp(forms).mean(axis=0)), rtol=1e-12)
    assert log_mean([np.array([-5000.0]), np.array([-5001.0])])[0] == pytest.approx(
        -5000 + np.log((1 + np.exp(-1.0)) / 2)
    )


def test_what_a_frame_forbids_says_nothing_about_it() -> None:
    counts = RNG.poisson(REFERENCE * speckles(6, seed=7)).astype(np.float32)
    seen = (RNG.random(counts.shape) < 0.7).astype(np.float32)
    shown = np.flatnonzero(seen[0])
    masked = log_probability_of_anything(DenseFrames(counts * seen, seen), REFERENCE, None, SHELL)[0]
    cut = log_probability_of_anything(
        DenseFrames(counts[:1, shown], None), REFERENCE[shown], None, SHELL[shown]
    )[0]
    assert masked == pytest.approx(cut, rel=1e-5)


def test_the_share_of_others_is_learnt_and_a_wrong_model_does_not_reject_everything() -> None:
    odds = np.concatenate([RNG.normal(30, 8, 7000), RNG.normal(-40, 20, 3000)])
    learns = np.ones(len(odds), dtype=bool)
    likely = particle_probability(odds, learns)
    assert (likely[:7000] > 0.5).mean() > 0.99
    # 2.5 % of the others are drawn where odds and their learnt share are for the particle.
    assert (likely[7000:] < 0.5).mean() > 0.96
    nothing_fits = particle_probability(-50.0 + RNG.normal(size=len(odds)), learns)
    assert (nothing_fits >= 0.5).mean() >= 0.19


def test_frames_that_only_watch_change_no_verdict() -> None:
    odds, learns = RNG.normal(0, 5, 200), np.ones(200, dtype=bool)
    learns[150:] = False
    before = particle_probability(odds, learns)
    odds[150:] -= 100
    np.testing.assert_array_equal(particle_probability(odds, learns)[:150], before[:150])
