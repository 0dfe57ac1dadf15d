"""Supports: the first holds the particle, later ones have exactly the volume that they are given."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orienteer.compute.arrays import to_device, to_numpy
from orienteer.phase.data import phasing_data
from orienteer.phase.settings import PhaseSettings
from orienteer.phase.state import PhaseState
from orienteer.phase.support import blurred, brightest, first_support, update_support

ON = [pytest.param("cpu"), pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.mark.parametrize("hole", [0.0, 2.0])
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_the_first_support_holds_the_body(body, hole, noise) -> None:
    made = body(hole=hole, noise=noise)
    data = phasing_data(made.intensity, device="cpu")
    assert data.diameter_A == pytest.approx(made.diameter_A, rel=0.25)
    volume = first_support(data).sum() * data.voxel_A**3
    assert made.volume_A3 < volume < 15 * made.volume_A3


def test_the_first_support_is_as_long_as_the_body_and_along_it(body) -> None:
    data = phasing_data(body().intensity, PhaseSettings(diameter_A=100.0), device="cpu")
    found = data.autocorrelation
    assert data.diameter_A == 100.0
    assert not found.is_found
    assert found.semi_axes_A[0] == pytest.approx(50.0)
    assert found.semi_axes_A[2] < 0.9 * found.semi_axes_A[0]
    assert abs(found.axes[0, 2]) > 0.7  # the body is long along z
    assert found.axes @ found.axes.T == pytest.approx(np.eye(3), abs=1e-9)


@pytest.mark.parametrize("device", ON)
@settings(deadline=None)  # the first call compiles a kernel
@given(volumes=st.lists(st.integers(1, 512), min_size=2, max_size=2), seed=st.integers(0, 99))
def test_the_brightest_voxels_are_as_many_as_asked_for(device, volumes, seed) -> None:
    values = np.random.default_rng(seed).normal(size=(2, 8, 8, 8)).astype(np.float32)
    found = to_numpy(brightest(to_device(values, device), np.array(volumes, float)))
    assert found.sum(axis=(1, 2, 3)).tolist() == volumes
    for own, chosen in zip(values, found, strict=True):
        assert chosen.all() or own[chosen].min() > own[~chosen].max()


def test_blurring_is_a_convolution_with_a_gaussian() -> None:
    from scipy.ndimage import gaussian_filter

    values = np.random.default_rng(0).normal(size=(2, 16, 16, 16)).astype(np.float32)
    slow = np.stack([gaussian_filter(one.astype(float), 1.5, mode="wrap", truncate=8) for one in values])
    assert blurred(values, 1.5) == pytest.approx(slow, abs=1e-4)


def test_a_support_follows_the_density_and_neither_grows_nor_collapses() -> None:
    rng = np.random.default_rng(0)
    density = rng.normal(size=(2, 20, 20, 20)).astype(np.float32)
    density[0, 5:9, 5:9, 5:9] += 20
    density[1, 10:14, 10:14, 10:14] += 1e4  # one spot far above all else, which a threshold would keep alone
    state = PhaseState(density, np.ones_like(density, bool), np.zeros(2, np.float32), np.full(2, 200.0))
    for _ in range(3):
        update_support(state, state.density, np.array([200.0, 300.0]), 1.0)
        assert state.support.sum(axis=(1, 2, 3)).tolist() == [200, 300]
    assert state.support[0, 5:9, 5:9, 5:9].all()
