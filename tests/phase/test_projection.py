"""Projections give every voxel its modulus, and steps go where the formulas of the methods say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orienteer.compute.arrays import to_device, to_numpy
from orienteer.phase.data import PhasingData, phasing_data
from orienteer.phase.projection import project_modulus, relax

ON = [pytest.param("cpu"), pytest.param("cuda", marks=pytest.mark.gpu)]


def slow_modulus(density: np.ndarray, background: np.ndarray, data: PhasingData) -> np.ndarray:
    """The obvious form on the whole grid of a complex FFT, in float64."""
    out = np.empty(density.shape)
    target = data.target.astype(np.float64)
    for b, one in enumerate(density.astype(np.float64)):
        transform = np.fft.rfftn(one)
        modulus = np.abs(transform)
        wanted = np.sqrt(np.maximum(target**2 - background[b], 0))
        new = np.where(target >= 0, wanted, np.minimum(modulus, -target))
        phase = np.where(modulus > 0, transform / np.where(modulus > 0, modulus, 1), 1)
        out[b] = np.fft.irfftn(new * phase, s=one.shape, axes=(0, 1, 2))
    return out


@pytest.mark.parametrize("device", ON)
def test_amplitudes_are_those_of_the_data_and_unknown_ones_stay(body, device) -> None:
    data = phasing_data(body(hole=1.5).intensity, device="cpu")
    rng = np.random.default_rng(1)
    density = rng.random((3, data.n, data.n, data.n), dtype=np.float32)
    # So bright a mean is more than the hole may hold.
    density *= -data.target[0, 0, 0] / density[0].sum() * 3
    background = np.array([0, 0.5, 2], np.float32) * np.median(data.amplitudes[data.measured]) ** 2
    expected = slow_modulus(density, background, data)
    found = project_modulus(to_device(density, device), to_device(background, device), data.to(device))
    assert np.abs(to_numpy(found) - expected).max() < 1e-5 * np.abs(expected).max()


def test_a_density_that_fits_is_left_alone(body) -> None:
    made = body(speckles=6.0)
    data = phasing_data(made.intensity, device="cpu")
    rng = np.random.default_rng(1)
    once = project_modulus(rng.random((1, data.n, data.n, data.n), dtype=np.float32), np.zeros(1, "f4"), data)
    twice = project_modulus(once, np.zeros(1, "f4"), data)
    assert np.abs(twice - once).max() < 1e-5 * np.abs(once).max()


def test_a_voxel_without_phase_gets_its_amplitude(body) -> None:
    data = phasing_data(body().intensity, device="cpu")
    found = project_modulus(np.zeros((1, data.n, data.n, data.n), np.float32), np.zeros(1, "f4"), data)
    assert np.isfinite(found).all()
    seen = data.target >= 0
    assert np.abs(np.fft.rfftn(found[0]))[seen] == pytest.approx(data.target[seen], rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("device", ON)
@given(
    keep=st.floats(-1, 1), add=st.floats(-1, 1), reflect=st.sampled_from([0.0, 1.0]), positive=st.booleans()
)
@settings(max_examples=20, deadline=None)
def test_a_step_is_p_where_allowed_and_a_mixture_elsewhere(device, keep, add, reflect, positive) -> None:
    rng = np.random.default_rng(3)
    x, p = rng.normal(size=(2, 2, 6, 6, 6)).astype(np.float32)
    support = rng.random((2, 6, 6, 6)) < 0.5
    allowed = support & ((p + reflect * (p - x) >= 0) | (not positive))
    expected = np.where(allowed, p, keep * x + add * p)
    moved = to_device(x.copy(), device)
    relax(moved, to_device(p, device), to_device(support, device), keep, add, reflect, positive)
    assert to_numpy(moved) == pytest.approx(expected, abs=1e-5)
