"""A resolution is where the curve first crosses, and every way not to have one is said."""

import numpy as np
import pytest

from orienteer.compare.criteria import half_bit_curve, resolution_at, threshold_curve
from orienteer.compare.fsc import Fsc, fourier_shell_correlation, independent_voxels
from orienteer.errors import OrienteerError


def curve(*correlation: float) -> Fsc:
    values = np.array([1.0, *correlation])
    return Fsc(0.01 * np.arange(len(values)), values, np.full(len(values), 1000), 3.0)


def test_the_first_crossing_counts_even_when_the_curve_rises_again() -> None:
    found = resolution_at(curve(0.9, 0.6, 0.4, 0.3, 0.7, 0.9, 0.9), "0.5")
    assert found.resolution_A == pytest.approx(1 / 0.025)
    assert found.q_inv_A == pytest.approx(0.025)
    assert not found.reaches_edge
    assert "40 A" in found.words


def test_between_shells_the_curve_is_a_line_in_q() -> None:
    found = resolution_at(curve(0.9, 0.343, 0.043), "0.143")
    assert found.q_inv_A == pytest.approx(0.02 + 0.01 * 2 / 3)
    assert resolution_at(curve(0.9, 0.343, 0.043), 0.143).q_inv_A == found.q_inv_A


def test_a_curve_that_never_falls_is_limited_by_the_voxels() -> None:
    found = resolution_at(curve(0.9, 0.8, 0.7), "0.5")
    assert found.reaches_edge
    assert found.resolution_A == pytest.approx(1 / 0.03)
    assert "the voxels are the limit" in found.words


def test_densities_that_agree_nowhere_have_no_resolution() -> None:
    found = resolution_at(curve(0.2, 0.4, 0.3, 0.9, 0.9), "0.5")
    assert found.resolution_A is None
    assert found.q_inv_A == 0
    assert "nowhere" in found.words
    assert resolution_at(curve(), "0.5").resolution_A is None


def test_shells_that_say_nothing_can_be_left_out() -> None:
    assert resolution_at(curve(0.2, 0.3, 0.9, 0.3), "0.5").resolution_A is None
    found = resolution_at(curve(0.2, 0.9, 0.3), "0.5", first_shell=2)
    assert found.q_inv_A == pytest.approx(0.02 + 0.01 * 2 / 3)


def test_a_shell_without_content_ends_what_can_be_claimed() -> None:
    found = resolution_at(curve(0.9, 0.8, np.nan, 0.9), "0.5")
    assert found.resolution_A == pytest.approx(50)
    assert "has no value" in found.words
    assert "both have content" in resolution_at(curve(0.9, 0.8, np.nan), "0.5").words


def test_the_half_bit_curve_asks_for_a_half_bit() -> None:
    """Signal and noise in the ratio that gives log2(1 + 2 SNR) = 1/2 lie on the curve."""
    signal_to_noise = (np.sqrt(2) - 1) / 2
    assert half_bit_curve(np.array([10**9]))[0] == pytest.approx(
        signal_to_noise / (1 + signal_to_noise), abs=1e-4
    )
    draw = np.random.default_rng(1)
    signal = draw.normal(size=(48,) * 3) * np.sqrt(signal_to_noise)
    found = fourier_shell_correlation(*(signal + draw.normal(size=signal.shape) for _ in range(2)))
    assert found.correlation[12:].mean() == pytest.approx(0.1716, abs=0.01)


def test_fewer_independent_voxels_ask_for_more() -> None:
    voxels = independent_voxels(32)
    assert np.all(np.diff(half_bit_curve(voxels)[1:]) < 0)
    assert np.all(half_bit_curve(voxels, filled=0.1) >= half_bit_curve(voxels))
    np.testing.assert_allclose(half_bit_curve(60 * voxels, order=60), half_bit_curve(voxels))
    assert half_bit_curve(voxels, filled=0.01, order=60).max() == 1
    fsc = curve(0.9, 0.3, 0.1)
    np.testing.assert_array_equal(threshold_curve(fsc, "half-bit"), half_bit_curve(fsc.n_voxels))
    assert resolution_at(fsc, "half-bit").q_inv_A > resolution_at(fsc, "half-bit", filled=0.02).q_inv_A


@pytest.mark.parametrize("criterion", ["half", "1.5", 0.0, 2])
def test_what_is_no_criterion_is_told(criterion: object) -> None:
    with pytest.raises(OrienteerError, match="no criterion"):
        resolution_at(curve(0.9), criterion)  # type: ignore[arg-type]


def test_an_impossible_particle_is_told() -> None:
    with pytest.raises(OrienteerError, match="impossible"):
        half_bit_curve(np.ones(3, np.int64), filled=1.2)
    with pytest.raises(OrienteerError, match="impossible"):
        half_bit_curve(np.ones(3, np.int64), order=0)


def test_shells_of_too_few_voxels_to_pass_are_not_held_against_a_curve() -> None:
    q = np.arange(6) * 0.01
    fsc = Fsc(q, np.array([1, 0.999, 0.99, 0.9, 0.9, 0.1]), np.array([1, 9, 30, 400, 600, 900]), 5.0)
    assert half_bit_curve(fsc.n_voxels, filled=0.1, order=4)[1] == 1
    found = resolution_at(fsc, "half-bit", filled=0.1, order=4)
    assert found.resolution_A is not None
    assert 0.04 < found.q_inv_A < 0.05


def test_noise_passes_no_shell_that_nothing_could_pass() -> None:
    draw = np.random.default_rng(1)
    for n in (20, 32, 48):
        voxels = independent_voxels(n)
        fsc = Fsc(np.arange(len(voxels)) * 0.005, draw.normal(0, 0.1, len(voxels)), voxels, 5.0)
        for order in (1, 60):
            assert resolution_at(fsc, "half-bit", filled=0.1, order=order).resolution_A is None


def test_a_gap_in_a_curve_that_goes_on_is_no_edge_of_the_data() -> None:
    found = resolution_at(curve(0.99, 0.98, np.nan, 0.05, 0.02), "0.143")
    assert found.resolution_A == pytest.approx(1 / 0.02)
    assert not found.reaches_edge
    assert "has no value" in found.words
    assert resolution_at(curve(0.99, 0.98, np.nan, np.nan), "0.143").reaches_edge
