"""Rings of frames: who is told by its radial profile, and that nobody of the particle is."""

from typing import Any

import numpy as np
import pytest

from orienteer.reconstruction.frames.frame_fit import fit_frames
from orienteer.reconstruction.nuisances.ring_deviation import Rings, RingSums, ring_odds

N, RINGS = 600, 20
IS_STRANGE = np.arange(N) % 4 == 0


def frames(photons: float, deviation: float, model_error: float, background: float = 0.0) -> RingSums:
    """Rings of frames of different brightness; in every fourth they deviate more than the model's error.

    photons : of a frame; background : of the same frame, evenly over the rings.
    """
    rng = np.random.default_rng(5)
    profile = np.exp(-0.25 * np.arange(RINGS))
    signal = photons * profile / profile.sum() * rng.lognormal(0, 0.5, (N, 1))
    behind = np.full(RINGS, background / RINGS)
    spread = np.where(IS_STRANGE, deviation, model_error)[:, None]
    off = rng.lognormal(0, 1.0, (N, RINGS)) ** spread
    # Whatever it is, its fluence was fitted.
    off /= (off * signal).sum(axis=1, keepdims=True) / signal.sum(axis=1, keepdims=True)
    seen = rng.poisson(signal * off + behind)
    return RingSums(*(np.asarray(x, dtype=np.float32) for x in (seen, signal + behind, signal)))


@pytest.mark.parametrize(
    ("photons", "model_error"), [(300.0, 0.0), (1e3, 0.02), (1e4, 0.05), (1e5, 0.05), (1e6, 0.1)]
)
def test_a_wrong_profile_is_told_and_the_error_of_the_model_is_none(
    photons: float, model_error: float
) -> None:
    odds = ring_odds(frames(photons, 0.6, model_error), np.ones(N, dtype=bool))
    assert (odds[~IS_STRANGE] < -2).mean() < 0.01
    assert (odds[IS_STRANGE] < -2).mean() > (0.5 if photons < 1e3 else 0.9)


def test_without_strangers_nobody_is_one() -> None:
    odds = ring_odds(frames(3000.0, 0.03, 0.03), np.ones(N, dtype=bool))
    assert (odds < -2).mean() < 0.005


def test_only_the_signal_over_a_background_deviates() -> None:
    """Hardly any signal over a bright background tells nothing: neither for a frame nor against it."""
    odds = ring_odds(frames(5.0, 0.6, 0.0, background=1e5), np.ones(N, dtype=bool))
    assert np.abs(odds).max() < 1.0


def test_a_handful_of_frames_judges_nobody() -> None:
    learns = np.arange(N) < 10
    assert np.isposinf(ring_odds(frames(1e4, 0.6, 0.0), learns)).all()


def test_rings_hold_what_frames_show_and_what_the_model_expects(tiny: Any, tmp_path: Any) -> None:
    n_pixels = tiny.detector.n_pixels
    np.save(tmp_path / "b.npy", np.full(n_pixels, 0.25))
    emc = tiny.emc(background_file=str(tmp_path / "b.npy"))
    emc.step()
    work, table = emc.work, emc.table
    rings = Rings(work, len(emc.fluence))
    sure = np.zeros(work.n_scored)
    fit_frames(
        work, emc.models, table.quaternion, table.model, emc.fluence, sure, fits_fluence=False, rings=rings
    )
    sums = rings.sums
    np.testing.assert_allclose(sums.seen.sum(axis=1), work.scored_photons(emc.frames), rtol=1e-6)
    np.testing.assert_allclose((sums.expected - sums.signal).sum(axis=1), 0.25 * work.n_scored, rtol=1e-4)
    assert sums.signal.sum() == pytest.approx(
        sums.seen.sum() - 0.25 * work.n_scored * len(sums.seen), rel=0.2
    )
