"""Bright shots of something else do not decide how frames look."""

from typing import Any

import numpy as np
import pytest

from orienteer.reconstruction.emc import Emc
from orienteer.reconstruction.frames.frame_store import FrameStore
from orienteer.reconstruction.frames.pixels import pixel_table
from orienteer.reconstruction.nuisances.first_estimates import FirstEstimates, bounded_weights
from orienteer.reconstruction.settings import EmcSettings
from orienteer.source.patterns import FRAME_MASK


def test_no_frame_counts_for_more_than_ten() -> None:
    fluence = np.array([0.0, 0.5, 1.0, 1.0, 2.0, 40.0])
    weight = np.array([1.0, 1.0, 1.0, 0.2, 1.0, 1.0])
    found = bounded_weights(weight, fluence)
    np.testing.assert_array_equal(found[:5], weight[:5])
    assert (found * fluence)[5] == pytest.approx(10 * np.median([0.5, 1.0, 2.0, 40.0]))
    np.testing.assert_array_equal(bounded_weights(np.zeros(3), np.ones(3)), np.zeros(3))


@pytest.mark.parametrize("is_counts", [True, False])
def test_sums_are_those_of_the_weighted_frames(tiny: Any, is_counts: bool) -> None:
    rng = np.random.default_rng(1)
    counts = np.array(tiny.patterns.dense())
    mask = (rng.random(counts.shape) < 0.1).astype(np.uint8) * 2
    frames = counts if is_counts else counts.astype(np.float32)
    source = tiny.source(frames=frames, columns={**tiny.patterns.columns, FRAME_MASK: mask})
    store = FrameStore(source, pixel_table(source))
    weight = (rng.random(len(counts)) < 0.7).astype(np.float64)
    fluence = rng.gamma(2.0, 0.5, len(counts))
    found = FirstEstimates(weight, fluence, 0.5, True).sums(store)
    seen = (mask[:, store.pixels.index] == 0).astype(np.float64)
    w = bounded_weights(weight, fluence)
    np.testing.assert_allclose(found[0], w @ (seen * counts[:, store.pixels.index]), rtol=1e-12)
    np.testing.assert_allclose(found[1], w @ seen, rtol=1e-12)
    np.testing.assert_allclose(found[2], (w * fluence) @ seen, rtol=1e-12)


def test_bright_junk_changes_neither_profile_nor_fluence_of_the_others(simulated: Any, tiny: Any) -> None:
    """Every tenth shot shows a small droplet and is twenty times as bright as all others."""
    data = simulated(tiny.particle, 20, 50.0, frames=400, photons_per_frame=1000, fluence_jitter=0.5)
    counts = np.array(data.patterns.dense())
    radius = np.linalg.norm(np.indices((20, 20)) - 9.5, axis=0).ravel()
    droplet = np.exp(-radius / 8)
    junk = np.arange(400) % 10 == 0
    counts[junk] = np.random.default_rng(2).poisson(20_000 * droplet / droplet.sum(), (40, 400))
    clean = data.emc(symmetry="I")
    dirty = Emc(data.source(frames=counts), EmcSettings(symmetry="I", diameter_A=200), seed=1, device="cpu")
    assert (dirty.first_weight[junk] == 0).all()
    assert (dirty.first_weight[~junk] == 1).mean() > 0.97
    q = np.linspace(0.002, 0.02, 20)
    assert np.abs(np.log(dirty.profile(q) / clean.profile(q))).max() < 0.2
    ratio = dirty.fluence[~junk] / clean.fluence[~junk]
    assert ratio == pytest.approx(np.ones(360), abs=0.15)
