"""Spectra: fixed lines, and SASE spectra whose ensemble has the right mean and width."""

import numpy as np
import pytest

from orienteer.detector.spectrum import SaseSpectrum, Spectrum
from orienteer.errors import OrienteerError

FWHM_PER_SIGMA = 2.3548200450309493


def test_fixed_lines_are_the_same_in_every_shot() -> None:
    spectrum = Spectrum([0.99, 1.0, 1.01], [1, 2, 1])
    energies, weights = spectrum.draw(5, np.random.default_rng(0))
    assert energies.shape == weights.shape == (5, 3)
    assert (energies == [0.99, 1.0, 1.01]).all()
    assert (weights == [0.25, 0.5, 0.25]).all()


@pytest.mark.parametrize("n_spikes", [1, 5, 20])
def test_the_ensemble_of_sase_shots_has_the_right_mean_and_width(n_spikes: int) -> None:
    n_shots, spectrum = 40_000, SaseSpectrum(0.01, n_spikes)
    sigma = 0.01 / FWHM_PER_SIGMA
    energies, weights = spectrum.draw(n_shots, np.random.default_rng(7))
    mean = (weights * energies).sum(axis=1)
    # Standard errors: the shot mean jitters by sigma sqrt(2 / (n + 1)).
    jitter = sigma * np.sqrt(2 / (n_spikes + 1))
    assert abs(mean.mean() - 1) < 5 * jitter / np.sqrt(n_shots)
    assert mean.std() == pytest.approx(jitter, rel=0.02)
    width = np.sqrt((weights * (energies - 1) ** 2).sum(axis=1).mean())
    assert width == pytest.approx(sigma, rel=0.02)


def test_the_mean_sase_spectrum_is_gaussian_with_the_given_full_width() -> None:
    energies, weights = SaseSpectrum(0.02, 8).draw(50_000, np.random.default_rng(1))
    heights, edges = np.histogram(energies, bins=np.linspace(0.96, 1.04, 41), weights=weights)
    centres = (edges[1:] + edges[:-1]) / 2
    half = heights.max() / 2
    assert np.interp(0.99, centres, heights) == pytest.approx(half, rel=0.04)
    assert np.interp(1.01, centres, heights) == pytest.approx(half, rel=0.04)


def test_shots_differ_and_a_seed_repeats_them() -> None:
    spectrum = SaseSpectrum(0.005, 8)
    one, again = (spectrum.draw(10, np.random.default_rng(3)) for _ in range(2))
    assert np.array_equal(one[0], again[0])
    assert np.array_equal(one[1], again[1])
    assert len(np.unique(one[0][:, 0])) == 10
    assert np.allclose(one[1].sum(axis=1), 1)
    assert (np.diff(one[0], axis=1) > 0).all()


@pytest.mark.parametrize(
    ("energies", "weights"), [([], []), ([1], [1, 2]), ([0], [1]), ([1], [-1]), ([1], [0]), ([np.nan], [1])]
)
def test_impossible_lines_are_refused(energies: list[float], weights: list[float]) -> None:
    with pytest.raises(OrienteerError):
        Spectrum(energies, weights)


@pytest.mark.parametrize(("bandwidth", "n_spikes"), [(0, 5), (0.5, 5), (-0.1, 5), (0.01, 0), (np.nan, 5)])
def test_impossible_sase_spectra_are_refused(bandwidth: float, n_spikes: int) -> None:
    with pytest.raises(OrienteerError):
        SaseSpectrum(bandwidth, n_spikes)
