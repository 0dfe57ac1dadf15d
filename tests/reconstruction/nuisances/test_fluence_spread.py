"""Fluence is told from orientation: it changes all rings of the detector by one factor."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import orienteer
from orienteer.particle.bodies import Spheroid
from orienteer.particle.named_bodies import random_blobs, two_domains, virus
from orienteer.reconstruction.emc import Emc
from orienteer.reconstruction.frames.frame_store import FrameStore
from orienteer.reconstruction.frames.pixels import pixel_table
from orienteer.reconstruction.nuisances.first_estimates import first_estimates
from orienteer.reconstruction.nuisances.fluence_spread import fluence_spread
from orienteer.reconstruction.nuisances.screening import RingPhotons
from orienteer.reconstruction.settings import EmcSettings
from orienteer.source.in_memory import InMemorySource
from orienteer.source.patterns import Patterns

N_FRAMES, WAVELENGTH_A = 600, 2.5
BODIES: dict[str, Callable[[], Any]] = {
    "virus": lambda: virus(300),
    "blobs": lambda: random_blobs(300, 30, seed=1),
    "two domains": lambda: two_domains(300),
    "long": lambda: Spheroid((60.0, 80.0, 150.0)),
}


@pytest.fixture(scope="module", params=BODIES)
def expected(request: pytest.FixtureRequest) -> Any:
    """(detector, noise-free frames (N, P) of 1000 photons) of a body in all orientations."""
    detector = orienteer.square_detector(
        48, edge_resolution_A=40, wavelength_A=WAVELENGTH_A, pixel_size_m=5e-4
    )
    settings = orienteer.SimulateSettings(frames=N_FRAMES, photons_per_frame=1000, poisson=False, seed=3)
    beam = orienteer.Beam(wavelength_A=WAVELENGTH_A)
    experiment = orienteer.simulate(BODIES[request.param](), beam, detector, settings, device="cpu")
    return detector, np.array(experiment.read().dense(), dtype=np.float64)


def frame_store(detector: Any, frames: Any, fluence: Any, background: float = 0.0) -> FrameStore:
    """Frames with photon noise at these fluences."""
    counts = np.random.default_rng(4).poisson(frames * fluence[:, None] + background).astype(np.int32)
    patterns = Patterns(
        counts, np.arange(len(counts), dtype=np.uint64), {"wavelength_A": np.full(len(counts), WAVELENGTH_A)}
    )
    source = InMemorySource(patterns, detector.frame_shape).with_detector(detector)
    return FrameStore(source, pixel_table(source))


def log_normal(spread: float) -> Any:
    width = np.sqrt(np.log1p(spread**2))
    return np.exp(np.random.default_rng(5).normal(-(width**2) / 2, width, N_FRAMES))


@pytest.mark.parametrize("brightness", [1.0, 10.0])
@pytest.mark.parametrize("background", [0.0, 0.4])
@pytest.mark.parametrize("spread", [0.0, 0.1, 0.3])
def test_fluence_is_estimated_where_it_varies_and_only_there(
    expected: Any, brightness: float, background: float, spread: float
) -> None:
    detector, frames = expected
    store = frame_store(detector, brightness * frames, log_normal(spread), background)
    behind = np.full(len(store.pixels), background) if background else None
    look = first_estimates(store, EmcSettings(), behind, np.ones(N_FRAMES, dtype=bool))
    assert look.estimates_fluence == (spread > 0)
    assert look.fluence_spread == pytest.approx(spread, rel=0.25, abs=0.05)
    if not spread:
        assert (look.fluence == 1).all()


@pytest.mark.parametrize("spread", [0.0, 0.3])
def test_a_background_that_nobody_has_told_does_not_pass_for_constant_fluence(
    expected: Any, spread: float
) -> None:
    """Rings that show hardly anything else are the same in every shot, whatever the fluence."""
    detector, frames = expected
    background = 0.025 * 10 * frames.sum() / frames.size
    store = frame_store(detector, 10 * frames, log_normal(spread), background)
    look = first_estimates(store, EmcSettings(), None, np.ones(N_FRAMES, dtype=bool))
    assert look.estimates_fluence == (spread > 0)
    assert look.fluence_spread == pytest.approx(spread, rel=0.25, abs=0.05)


def test_the_user_decides_if_he_likes(expected: Any) -> None:
    detector, frames = expected
    everybody = np.ones(N_FRAMES, dtype=bool)
    same, other = (frame_store(detector, frames, log_normal(spread)) for spread in (0.0, 0.5))
    assert first_estimates(same, EmcSettings(fluence="estimate"), None, everybody).estimates_fluence
    found = first_estimates(other, EmcSettings(fluence="constant"), None, everybody)
    assert not found.estimates_fluence
    assert (found.fluence == 1).all()


def test_rings_without_signal_and_few_frames_have_no_say() -> None:
    rng = np.random.default_rng(6)
    fluence = log_normal(0.2)
    signal = np.concatenate([np.full(8, 100.0), np.zeros(8)])
    background = np.full(16, 300.0)
    counted = rng.poisson(signal * fluence[:, None] + background) - background
    assert fluence_spread(RingPhotons(counted, background)).value == pytest.approx(0.2, abs=0.03)
    assert fluence_spread(RingPhotons(counted[:12], background)).value == 0.0
    assert fluence_spread(RingPhotons(0 * counted, background)).value == 0.0


def test_frames_that_only_watch_do_not_decide(tiny: Any) -> None:
    emc = tiny.emc(symmetry="I", sentinels=0.3)
    counts = np.array(tiny.patterns.dense())
    counts[emc.sentinel] = counts[np.flatnonzero(emc.sentinel)[::-1]]
    other = Emc(tiny.source(frames=counts), emc.settings, device="cpu")
    assert other.fluence_spread == emc.fluence_spread
