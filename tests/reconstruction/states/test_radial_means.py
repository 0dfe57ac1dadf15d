"""Every state has a radial mean of its own."""

from typing import Any

import numpy as np
import pytest

from orienteer.compare.shells import radial_mean
from orienteer.particle.conformations import Ensemble
from orienteer.particle.named_bodies import random_blobs
from orienteer.reconstruction.model.radial_profile import RadialProfile
from orienteer.reconstruction.states import splitting
from orienteer.reconstruction.states.radial_means import (
    NO_RATIO,
    ratios_of_state,
    ratios_of_states,
    state_of_ratios,
)
from orienteer.reconstruction.states.trial import Trial

N_FRAMES = 300
SIZES_A = (200.0, 120.0)
# Photons in a ring that tell its mean to 6 %.
MANY = 300


@pytest.fixture(scope="module")
def data(simulated: Any) -> Any:
    """Frames of two particles of different sizes, whose dark rings lie at different radii."""
    states = tuple(random_blobs(size, 20, seed) for size, seed in zip(SIZES_A, (5, 11), strict=True))
    ensemble = Ensemble(states, np.array([0.5, 0.5]), ("large", "small"))
    return simulated(ensemble, 24, 40.0, frames=N_FRAMES, photons_per_frame=300)


def classes(data: Any) -> np.ndarray:
    return np.asarray(data.patterns.columns["truth_class"]).astype(np.int64)


def split(data: Any, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> Any:
    """A reconstruction with the true poses whose model has just become two, each of the frames of a state."""
    emc = data.emc(level=3, models=2, known_orientations_column="truth_orientation", **settings)
    emc.step()
    truth = Trial(0, (classes(data) == 1) & ~emc.sentinel, 1.0)
    monkeypatch.setattr(splitting, "likeliest_split", lambda emc: truth)
    splitting.split_state(emc)
    return emc


def mean_of_frames(data: Any, emc: Any, state: int) -> tuple[np.ndarray, np.ndarray]:
    """Photons of the frames of a state in rings of a voxel, and those that its volume makes of them."""
    own = (classes(data) == state) & ~emc.sentinel
    frames = np.asarray(data.patterns.dense())[own].reshape(own.sum(), -1)[:, emc.pixels.index]
    radius = np.rint(emc.pixels.length_inv_A / emc.work.stage.voxel_inv_A).astype(int)
    volume = emc.volumes()[state]
    mean = radial_mean(np.nan_to_num(np.asarray(volume.values)))
    exposure = np.bincount(radius, emc.pixels.correction)
    counted = np.bincount(radius, frames.mean(axis=0)) / np.maximum(exposure, 1e-12)
    shown = np.flatnonzero(np.bincount(radius, frames.sum(axis=0)) > MANY)
    return counted[shown], mean[shown]


def test_a_ratio_is_that_of_the_photons_in_each_ring(data: Any) -> None:
    emc = data.emc(level=3, models=2)
    state = np.where(emc.sentinel, -1, classes(data))
    large, small = ratios_of_states(emc, state, 2)
    frames = np.asarray(data.patterns.dense()).reshape(N_FRAMES, -1)[:, emc.pixels.index][:, emc.work.places]
    ring = np.searchsorted(np.linspace(0, emc.work.length_inv_A.max(), 6), emc.work.length_inv_A)
    expected = emc.pixels.correction[emc.work.places] * emc.profile(emc.work.length_inv_A)
    for m, ratio in enumerate((large, small)):
        own = state == m
        counted = np.bincount(ring, frames[own].sum(axis=0))[1:]
        predicted = np.bincount(ring, emc.fluence[own].sum() * expected * ratio(emc.work.length_inv_A))[1:]
        many = counted > 1000
        # Between the rings that it is known at, the mean falls steeply.
        np.testing.assert_allclose(predicted[many], counted[many], rtol=0.1)
        assert predicted.sum() == pytest.approx(counted.sum(), rel=0.05)
    # Small particles have their dark rings further out.
    apart = large(emc.work.length_inv_A) / small(emc.work.length_inv_A)
    assert apart.max() > 2 * apart.min()


def test_frames_of_one_state_leave_no_ratio(data: Any) -> None:
    emc = data.emc(level=3, models=2)
    emc.fluence[:] = 1.0
    only, none = ratios_of_states(emc, np.where(emc.sentinel, -1, 0), 2)
    length = emc.work.length_inv_A
    assert none is NO_RATIO
    assert (none(length) == 1).all()
    assert np.abs(only(length) - 1).mean() < 0.05


def test_other_ratios_change_no_expected_photon_but_for_interpolation(
    data: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    emc = split(data, monkeypatch)
    matrices = emc.work.poses.matrices[:20]
    before = emc.work.expander(emc.models[0]).slices_of(1, matrices, by_pixel=False).copy()
    radius = np.linspace(0, emc.work.length_inv_A.max(), 5)
    gentle = RadialProfile(radius, np.array([0.0, 0.1, 0.2, 0.1, 0.3]))
    emc.take_ratios([ratio.times(gentle) for ratio in emc.ratios])
    after = emc.work.expander(emc.models[0]).slices_of(1, matrices, by_pixel=False)
    np.testing.assert_allclose(after, before, rtol=0.03)


def test_each_volume_has_the_radial_mean_of_its_frames(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few photons hold a voxel to the radial mean: if that is of all frames, faint states become bright."""
    emc = split(data, monkeypatch)
    for _ in range(4):
        emc.step()
    for state in range(2):
        counted, mean = mean_of_frames(data, emc, state)
        assert np.abs(np.log(mean / counted)).mean() < 0.1


def test_a_state_goes_on_from_a_checkpoint_with_its_radial_mean(
    data: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    emc = split(data, monkeypatch)
    emc.step()
    again = data.emc(level=3, models=2, known_orientations_column="truth_orientation")
    again.restore(emc.state())
    for one, other in zip(emc.volumes(), again.volumes(), strict=True):
        np.testing.assert_array_equal(one.values, other.values)
    assert emc.step().log_likelihood == again.step().log_likelihood


def test_a_checkpoint_of_before_has_no_ratios() -> None:
    ratio = RadialProfile(np.array([0.0, 1.0]), np.array([0.5, -0.5]))
    state = state_of_ratios([NO_RATIO, ratio])
    found = ratios_of_state(state, 2)
    np.testing.assert_array_equal(found[1]([0.0, 0.25, 1.0]), ratio([0.0, 0.25, 1.0]))
    assert ratios_of_state({}, 2) == [NO_RATIO, NO_RATIO]


def test_radial_means_are_interpolated_at_distances_and_not_at_every_voxel(
    data: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Voxels are on the device, and far more than the distances that they have."""
    emc, sizes = split(data, monkeypatch), []
    interpolate = np.interp
    monkeypatch.setattr(np, "interp", lambda x, *to: sizes.append(np.size(x)) or interpolate(x, *to))
    emc.step()
    assert 0 < max(sizes) < emc.work.edge_voxels**3 / 4
