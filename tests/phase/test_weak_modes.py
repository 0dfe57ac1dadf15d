"""Modes that hide in what was not measured are found, and only those."""

import numpy as np
import pytest
from numpy.typing import NDArray

from orienteer.phase import weak_modes as module
from orienteer.phase.half_grid import density_of, frequencies, half_grid_shells, transform_of
from orienteer.phase.weak_modes import WEAK, hole_of, weak_modes


def ball(n: int, radius: float) -> NDArray[np.bool_]:
    axis = np.arange(n) - n // 2
    return axis[:, None, None] ** 2 + axis[:, None] ** 2 + axis**2 <= radius**2


def with_hole(n: int, radius: int) -> NDArray[np.bool_]:
    """Everything measured between the shells ``radius`` and the last whole one."""
    return np.array(half_grid_shells(n) >= radius)


@pytest.mark.parametrize("n", [9, 10])
def test_eigenvalues_are_those_of_the_whole_matrix(n: int) -> None:
    support, measured = ball(n, 3.2), with_hole(n, 3)
    found = weak_modes(support * 1.0, support, measured, keep=True)
    hole = hole_of(measured)
    columns = []
    for voxel in np.argwhere(support):
        unit = np.zeros((n, n, n))
        unit[tuple(voxel)] = 1
        columns.append(density_of(np.where(hole, transform_of(unit), 0))[support])
    expected = np.linalg.eigvalsh(np.array(columns))[::-1]
    np.testing.assert_allclose(found.eigenvalues, expected[: len(found.eigenvalues)], atol=1e-6)
    assert (expected[len(found.eigenvalues) :] < 2e-3).all()
    assert found.number == (expected > WEAK).sum() > 0
    assert found.is_complete
    # Each mode has the share of its power in the hole that its eigenvalue says.
    assert found.modes is not None
    power = [(density_of(np.where(hole, transform_of(mode), 0)) ** 2).sum() for mode in found.modes]
    np.testing.assert_allclose(power, found.eigenvalues, atol=1e-4)


def test_the_share_is_what_the_weak_modes_hold_of_the_density() -> None:
    n = 10
    support, measured = ball(n, 3.2), with_hole(n, 3)
    modes = weak_modes(support * 1.0, support, measured, keep=True)
    assert modes.modes is not None
    hidden, seen = modes.modes[0], modes.modes[-1]
    assert modes.eigenvalues[-1] < WEAK
    assert weak_modes(hidden, support, measured).share == pytest.approx(1, abs=1e-3)
    assert weak_modes(seen, support, measured).share == pytest.approx(0, abs=1e-3)
    assert weak_modes(hidden + seen, support, measured).share == pytest.approx(0.5, abs=1e-2)


def test_a_complete_measurement_leaves_nothing_open() -> None:
    found = weak_modes(ball(12, 3.0) * 1.0, ball(12, 3.0), with_hole(12, 0))
    assert found.number == 0
    assert found.n_unmeasured == 0
    assert found.words() == "The data determine every part of the density."


def test_one_missing_voxel_at_the_centre_is_no_weak_mode_of_a_small_particle() -> None:
    n = 16
    found = weak_modes(ball(n, 4.0) * 1.0, ball(n, 4.0), with_hole(n, 1))
    assert found.n_unmeasured == 1
    # The one mode is the support itself, and this share of its power lies in the voxel.
    assert found.eigenvalues[0] == pytest.approx(ball(n, 4.0).sum() / n**3, rel=1e-4)
    assert found.number == 0


def test_a_larger_hole_hides_more() -> None:
    n = 24
    numbers = [weak_modes(ball(n, 5.5) * 1.0, ball(n, 5.5), with_hole(n, r)).number for r in (2, 3, 4, 5)]
    assert numbers == sorted(numbers)
    assert numbers[0] == 0
    assert numbers[-1] > 4


def test_what_lies_beyond_the_edge_is_no_hole() -> None:
    n = 16
    whole, half = frequencies(n)
    radius = np.sqrt(whole[:, None, None] ** 2 + whole[:, None] ** 2 + half**2)
    measured = with_hole(n, 2) & (radius < 6.2)  # through the middle of a shell
    hole = hole_of(measured)
    assert hole.any()
    assert half_grid_shells(n)[hole].max() == 1


def test_a_single_missing_row_inside_the_data_is_a_part_of_the_hole() -> None:
    measured = with_hole(16, 0)
    measured[3, 4, 2] = False
    assert hole_of(measured)[3, 4, 2]


def test_the_sentence_tells_how_many_and_how_much() -> None:
    n = 16
    found = weak_modes(ball(n, 5.0) * 1.0, ball(n, 5.0), with_hole(n, 3))
    assert "smooth mode" in found.words()
    assert f"{found.share:.0%}" in found.words()
    assert found.share > 0.5  # an even density is a smooth one


def test_of_a_hole_of_many_waves_the_innermost_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    given = ball(16, 5.0) * 1.0, ball(16, 5.0), with_hole(16, 4)
    whole = weak_modes(*given)
    assert whole.is_complete
    monkeypatch.setattr(module, "MOST_WAVES", 40)
    some = weak_modes(*given)
    assert not some.is_complete
    assert 0 < some.number < whole.number
    assert "at least" in some.words()
    # Fewer waves hide less of every mode.
    assert (some.eigenvalues <= whole.eigenvalues[: len(some.eigenvalues)] + 1e-9).all()
    monkeypatch.setattr(module, "MOST_WAVES", 1)
    assert "could not be determined" in weak_modes(*given).words()


def test_an_empty_support_has_no_modes() -> None:
    assert weak_modes(np.zeros((8, 8, 8)), np.zeros((8, 8, 8), bool), with_hole(8, 2)).number == 0


@pytest.mark.gpu
def test_the_gpu_finds_the_same() -> None:
    import cupy

    support, measured = ball(16, 5.0), with_hole(16, 3)
    expected = weak_modes(support * 1.0, support, measured)
    found = weak_modes(*(cupy.asarray(part) for part in (support * 1.0, support, measured)))
    np.testing.assert_allclose(found.eigenvalues, expected.eigenvalues, atol=1e-4)
    assert found.share == pytest.approx(expected.share, abs=1e-3)
