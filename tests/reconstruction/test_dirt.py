"""What real shots bring along: fluence, junk, background, empty shots; each from the true model on."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orienteer.particle.named_bodies import random_blobs
from orienteer.reconstruction.emc import Emc
from orienteer.reconstruction.settings import EmcSettings
from orienteer.simulation.truth import ShotKind

SETTINGS: dict[str, Any] = {"level": 4, "sentinels": 0.05}
BRIGHTER = pytest.mark.slow(reason="fainter frames, which lose their weight sooner, are tried every time")


def after_first_stage(data: Any, n_steps: int = 4, **settings: Any) -> Emc:
    """A reconstruction whose first stage has found the true model, some iterations later."""
    emc = data.emc(**SETTINGS, **settings)
    data.take_truth(emc)
    emc.noise.dispersion = np.full(40, 0.02)
    emc.enter(1)
    for _ in range(n_steps):
        emc.step()
    return emc


def shots(simulated: Any, tiny: Any, **settings: Any) -> Any:
    settings = {"frames": 300, "photons_per_frame": 1000, **settings}
    return simulated(tiny.particle, 20, 50.0, **settings)


def test_fluences_over_two_decades_are_found_with_mean_1(simulated: Any, tiny: Any) -> None:
    data = shots(simulated, tiny, fluence_jitter=1.31)
    emc = after_first_stage(data)
    true = np.asarray(data.patterns.columns["truth_fluence"])
    merged = ~emc.sentinel
    assert emc.estimates_fluence
    assert np.corrcoef(emc.fluence[merged], true[merged])[0, 1] > 0.95
    assert emc.fluence[merged & (emc.best_model >= 0)].mean() == pytest.approx(1.0, abs=1e-6)
    # Sentinels, which nobody merges, get theirs too.
    assert np.corrcoef(np.log(emc.fluence[emc.sentinel]), np.log(true[emc.sentinel]))[0, 1] > 0.9


@pytest.fixture(scope="module")
def constant_fluence(simulated: Any, tiny: Any) -> Any:
    """A run that estimates the fluence of frames that all had the same."""
    data = shots(simulated, tiny, photons_per_frame=5000)
    return data, after_first_stage(data, fluence="estimate")


def test_constant_fluence_stays_constant(constant_fluence: Any) -> None:
    data, emc = constant_fluence
    # Photon noise alone is 1 %; the numbers of photons differ by 12 %, since the pose does.
    error = np.abs(emc.fluence[~emc.sentinel] - 1).mean()
    photons = emc.frames.photons / emc.frames.photons.mean()
    assert error < 0.3 * np.abs(photons - 1).mean()
    assert not data.emc(**SETTINGS).estimates_fluence


def test_constant_fluence_stays_within_two_percent(constant_fluence: Any) -> None:
    _, emc = constant_fluence
    assert np.abs(emc.fluence[~emc.sentinel] - 1).mean() < 0.02


def test_dark_frames_harm_nobody(simulated: Any, tiny: Any) -> None:
    data = shots(simulated, tiny, fluence_jitter=0.5, empty_fraction=0.3)
    emc = after_first_stage(data)
    dark = np.asarray(data.patterns.columns["truth_kind"]) == ShotKind.EMPTY
    assert np.isfinite(emc.models).all()
    assert np.isfinite(emc.fluence).all()
    assert emc.fluence[dark].max() < 0.1 * np.median(emc.fluence[~dark])


def test_fluence_is_that_of_the_signal_and_not_of_the_background(
    simulated: Any, tiny: Any, tmp_path: Path
) -> None:
    data = shots(simulated, tiny, fluence_jitter=1.0, background_photons=1000)
    np.save(tmp_path / "b.npy", np.full(400, 1000 / 400))
    emc = after_first_stage(data, background_file=str(tmp_path / "b.npy"))
    true = np.asarray(data.patterns.columns["truth_fluence"])
    shown = (emc.best_model >= 0) & ~emc.sentinel
    assert np.corrcoef(emc.fluence[shown], true[shown])[0, 1] > 0.95


@pytest.mark.slow(reason="a blind run rejects empty shots every time, in test_traps.py")
def test_empty_shots_are_rejected_and_hits_are_not(simulated: Any, tiny: Any, tmp_path: Path) -> None:
    data = shots(simulated, tiny, empty_fraction=0.5, background_photons=1000)
    np.save(tmp_path / "b.npy", np.full(400, 1000 / 400))
    emc = after_first_stage(data, background_file=str(tmp_path / "b.npy"))
    empty = np.asarray(data.patterns.columns["truth_kind"]) == ShotKind.EMPTY
    rejected = emc.best_model < 0
    assert rejected[empty].mean() > 0.95
    assert rejected[~empty].mean() < 0.02
    assert data.aligned(emc).shells.correlation[2:11].mean() > 0.8


def test_junk_is_rejected_and_particles_are_not(simulated: Any, tiny: Any) -> None:
    data = shots(simulated, tiny, junk_fraction=0.3, photons_per_frame=3000)
    emc = after_first_stage(data)
    junk = np.asarray(data.patterns.columns["truth_kind"]) == ShotKind.JUNK
    rejected = emc.best_model < 0
    assert rejected[junk].mean() > 0.7
    assert rejected[~junk].mean() < 0.03


@pytest.mark.parametrize(("photons", "least"), [(128, 0.98), pytest.param(300, 0.99, marks=BRIGHTER)])
def test_faint_frames_of_the_particle_keep_their_weight(
    simulated: Any, tiny: Any, photons: int, least: float
) -> None:
    """Against the best of many descriptions of something else they would lose by chance."""
    emc = after_first_stage(shots(simulated, tiny, photons_per_frame=photons))
    merged = ~emc.sentinel
    assert emc.table.weight[merged].mean() > least
    assert (emc.best_model[merged] < 0).mean() < 0.002


def test_nothing_is_rejected_when_told_so(simulated: Any, tiny: Any) -> None:
    data = shots(simulated, tiny, frames=150, junk_fraction=0.3)
    emc = after_first_stage(data, n_steps=1, reject_junk=False)
    assert (emc.best_model >= 0).all()


def test_bright_strangers_are_left_out_before_the_model_is_sharp(simulated: Any, tiny: Any) -> None:
    """Droplets ten times as bright as particles would otherwise be what the first stage finds."""
    data = shots(simulated, tiny, photons_per_frame=2000, fluence_jitter=0.5)
    other = simulated(
        random_blobs(200.0, 3, 11), 20, 50.0, frames=300, photons_per_frame=20_000, fluence_jitter=0.5, seed=4
    )
    counts = np.array(data.patterns.dense())
    strange = np.arange(300) % 5 == 0
    counts[strange] = np.array(other.patterns.dense())[strange]
    emc = Emc(data.source(frames=counts), EmcSettings(level=3, diameter_A=200), seed=1, device="cpu")
    for _ in range(3):
        emc.step()
    assert emc.course.stage == 0
    assert (emc.best_model[strange] < 0).mean() > 0.8
    assert (emc.best_model[~strange] < 0).mean() < 0.05
