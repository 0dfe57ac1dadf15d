"""The arithmetic of the sums of a GPU, with NumPy in the place of CuPy: copies that join, units that grow."""

import numpy as np
import pytest

from orienteer.errors import OrienteerError
from orienteer.slicing.sums import GpuSums


@pytest.fixture(autouse=True)
def numpy_for_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orienteer.slicing.sums.import_cupy", lambda: np)


def add_somewhere(sums, expected, rng) -> None:
    """What the kernel does for one plane of a cell: one sector for the voxels y, y + 1 and z, z + 1."""
    n = sums.n
    x, y, z = rng.integers(n), rng.integers(n - 1), rng.integers(n - 1)
    sector = rng.random((2, 2, 2), dtype=np.float32)
    sums.sectors[y & 1, z & 1, x, y >> 1, z >> 1] += sector.ravel()
    expected[x, y : y + 2, z : z + 2] += sector


@pytest.mark.parametrize("n", [2, 3, 6, 7])
def test_the_four_copies_join_to_one_volume(n) -> None:
    rng = np.random.default_rng(n)
    sums, expected = GpuSums(n), np.zeros((n, n, n, 2))
    for _ in range(200):
        add_somewhere(sums, expected, rng)
    np.testing.assert_allclose(sums.finish(), expected, rtol=1e-5)


def test_many_rows_move_to_double_precision_and_none_is_lost(monkeypatch) -> None:
    monkeypatch.setattr("orienteer.slicing.sums._ROWS_IN_SINGLE", 10)
    rng = np.random.default_rng(1)
    sums, expected = GpuSums(5), np.zeros((5, 5, 5, 2))
    for _ in range(60):
        sums.expect_rows(3)
        add_somewhere(sums, expected, rng)
    assert np.count_nonzero(sums.sectors) < 100  # most have left the float32 copies
    np.testing.assert_allclose(sums.finish(), expected, rtol=1e-5)


def test_the_unit_keeps_every_sum_within_64_bits_and_what_was_added_before() -> None:
    rng = np.random.default_rng(2)
    sums, expected, magnitudes = GpuSums(3, deterministic=True), np.zeros((3, 3, 3, 2)), np.zeros(2)
    for scale in (1e-3, 1.0, 1.0, 1e9, 1e-6, 1e15):
        values = rng.normal(size=(3, 3, 3, 2)) * scale
        total = np.abs(values).sum(axis=(0, 1, 2))
        magnitudes += total
        exponents = np.array(sums.expect_magnitudes(*total))
        assert np.all(magnitudes * np.ldexp(1.0, exponents) < 2.0**62)
        assert np.all(magnitudes * np.ldexp(1.0, exponents) > 2.0**50)  # and wastes few of them
        sums.fixed += np.rint(values * np.ldexp(1.0, exponents)).astype(np.int64)
        expected += values
    np.testing.assert_allclose(sums.finish(), expected, atol=1e-12 * np.abs(expected).max())


def test_sums_of_ranks_have_the_bits_of_one_where_all_know_what_will_come() -> None:
    rng = np.random.default_rng(3)
    scales = (1e-3, 1.0, 3.0, 40.0, 0.2, 5.0)
    parts = [rng.normal(size=(3, 3, 3, 2)).astype(np.float32) * np.float32(scale) for scale in scales]
    totals = [np.abs(part).sum(axis=(0, 1, 2), dtype=float) for part in parts]
    predicted = tuple(1.3 * np.sum(totals, axis=0))

    def added(chosen) -> np.ndarray:
        sums = GpuSums(3, True, predicted)
        for number in chosen:
            units = np.ldexp(1.0, sums.expect_magnitudes(*totals[number]))
            sums.fixed += np.rint(parts[number].astype(float) * 0.3 * units).astype(np.int64)
        return sums.finish()

    one = added(range(6))
    np.testing.assert_array_equal(added((4, 1, 0)) + added((5, 2, 3)), one)
    np.testing.assert_array_equal(added(()) + added((5, 4, 3, 2, 1, 0)), one)


def test_units_grow_where_more_comes_than_was_foretold() -> None:
    sums = GpuSums(2, True, (1.0, 1.0))
    for scale in (1.0, 1e6):
        exponents = sums.expect_magnitudes(scale, scale)
        assert scale * 2.0 ** max(exponents) < 2.0**61
        sums.fixed += round(scale * 2.0 ** exponents[0])
    np.testing.assert_allclose(sums.finish(), 1e6 + 1, rtol=1e-12)


def test_nothing_inserted_is_nothing() -> None:
    sums = GpuSums(3, deterministic=True)
    assert not sums.finish().any()
    sums.expect_magnitudes(0.0, 0.0)
    assert not sums.finish().any()


def test_small_values_behind_nothing_lose_no_digits() -> None:
    sums = GpuSums(2, deterministic=True)
    sums.expect_magnitudes(1e-20, 0.0)
    exponents = np.array(sums.expect_magnitudes(1e-20, 3e-20))
    sums.fixed += np.rint([2e-20, 3e-20] * np.ldexp(1.0, exponents)).astype(np.int64)
    np.testing.assert_allclose(sums.finish()[0, 0, 0], [2e-20, 3e-20], rtol=1e-12)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_sums_of_what_is_not_finite_are_refused(wrong) -> None:
    with pytest.raises(OrienteerError, match="not finite"):
        GpuSums(3, deterministic=True).expect_magnitudes(1.0, wrong)
