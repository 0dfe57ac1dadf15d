"""One noisy shell ends no claim; a curve that falls for good ends it where it first falls."""

import numpy as np
import pytest
from numpy.typing import NDArray

from orienteer.compare.crossing import Crossing, crossing_of


def crossing(*excess: float, wide: float = 1.0, first: int = 1) -> Crossing:
    curve = np.array([1.0, *excess])
    voxels = np.arange(len(curve)) ** 2
    return crossing_of(np.arange(len(curve)) * 1.0, curve, voxels, shells_per_speckle=wide, first_shell=first)


def falling(n: int = 30, end: float = 14.3) -> NDArray[np.float64]:
    return 1 / (1 + np.exp((np.arange(n) - end) / 1.5)) - 0.5


def test_a_curve_that_falls_steadily_falls_where_it_meets_the_level() -> None:
    for wide in (1.0, 4.0, 9.0):
        found = crossing_of(np.arange(30.0), falling(), np.arange(30) ** 2, shells_per_speckle=wide)
        assert found.q == pytest.approx(14.3, abs=0.02)
        assert found.shell == 15


def test_a_dip_narrower_than_a_speckle_ends_nothing() -> None:
    assert crossing(0.4, 0.4, -0.3, 0.4, 0.4).shell is None
    assert crossing(0.4, 0.4, -0.1, -0.1, 0.4, 0.4).shell is None
    deep = (0.4, 0.4, -0.5, -0.5, 0.4, 0.4, 0.4, 0.4)
    assert crossing(*deep).q == pytest.approx(2 + 4 / 9)
    assert crossing(*deep, wide=5).shell is None


def test_noise_beyond_the_end_of_a_curve_moves_the_end_little() -> None:
    ends = []
    for seed in range(200):
        noise = np.random.default_rng(seed).normal(0, 0.1, 30)
        found = crossing_of(np.arange(30.0), falling() + noise, np.arange(30) ** 2)
        assert found.q is not None
        ends.append(found.q)
    assert np.mean(ends) == pytest.approx(14.3, abs=0.3)
    assert np.std(ends) < 0.6


def test_a_dip_that_noise_makes_in_one_of_many_shells_does_not_decide() -> None:
    """Shells that correlate by 0.4 with a scatter of 0.15 are below 0.143 now and then."""
    by_first_shell, found = 0, 0
    for seed in range(200):
        curve = np.random.default_rng(seed).normal(0.4 - 0.143, 0.15, 30)
        by_first_shell += bool((curve[1:] < 0).any())
        found += crossing_of(np.arange(30.0), curve, np.arange(30) ** 2).q < 28  # type: ignore[operator]
    assert by_first_shell > 120
    assert found < 20


def test_a_curve_that_begins_below_has_no_end() -> None:
    assert crossing(-0.3, -0.3, -0.1, 0.4).q is None
    assert crossing(-0.3, -0.3, -0.1, 0.4, first=4).q == 4


def test_a_shell_without_a_value_ends_the_curve_at_the_one_before() -> None:
    found = crossing(0.4, 0.4, np.nan, 0.4)
    assert found.is_cut_off
    assert found.q == 2
    assert crossing(np.nan, 0.4).q is None
