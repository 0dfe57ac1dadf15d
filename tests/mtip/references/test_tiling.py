"""Slots of tiles: every number comes back as it was, or as exactly as half the bytes allow."""

import numpy as np
import pytest

from orienteer.errors import OrienteerError
from orienteer.mtip.references.tiling import Tiling


def test_tiles_cover_all_rows_and_the_last_has_what_is_left() -> None:
    tiling = Tiling.even(10, 4, 3)
    assert [tiling.rows(tile) for tile in range(len(tiling))] == [slice(0, 4), slice(4, 8), slice(8, 10)]
    assert tiling.shape(2) == (2, 3)
    assert Tiling.even(10, 4, 3, by_pixel=True).shape(2) == (3, 2)
    assert tiling.n_rows == 10


@pytest.mark.parametrize("by_pixel", [False, True])
def test_single_numbers_are_kept_bit_for_bit_and_read_in_place(by_pixel: bool) -> None:
    tiling = Tiling.even(5, 2, 7, by_pixel=by_pixel)
    slot = np.zeros(tiling.slot_bytes, dtype=np.uint8)
    for tile in range(len(tiling)):
        values = np.random.default_rng(tile).normal(size=tiling.shape(tile)).astype(np.float32)
        tiling.write(tile, values, slot)
        found = tiling.read(tile, slot)
        assert np.array_equal(found, values)
        assert np.shares_memory(found, slot)


@pytest.mark.parametrize("unit", [1e-30, 1.0, 1e30])
def test_half_numbers_are_within_their_rounding_whatever_the_unit(unit: float) -> None:
    tiling = Tiling.even(40, 40, 50, kept_as="float16")
    values = (10 ** np.random.default_rng(0).uniform(-6, 0, (40, 50)) * unit).astype(np.float32)
    slot = np.empty(tiling.slot_bytes, dtype=np.uint8)
    tiling.write(0, values, slot)
    found = tiling.read(0, slot, np.empty(2000, dtype=np.float32))
    assert np.all(np.abs(found - values) <= np.abs(values) / 2048)
    assert not np.array_equal(found, values)
    assert tiling.slot_bytes < 0.52 * values.nbytes


def test_half_numbers_of_an_empty_tile_are_zeros() -> None:
    tiling = Tiling.even(2, 2, 3, kept_as="float16")
    slot = np.empty(tiling.slot_bytes, dtype=np.uint8)
    tiling.write(0, np.zeros((2, 3), dtype=np.float32), slot)
    assert not tiling.read(0, slot, np.ones(6, dtype=np.float32)).any()


def test_what_cannot_be_kept_is_told() -> None:
    with pytest.raises(OrienteerError, match="cannot be kept"):
        Tiling((0,), 3)
    with pytest.raises(OrienteerError, match="not finite"):
        tiling = Tiling.even(1, 1, 1, kept_as="float16")
        tiling.write(0, np.array([[np.nan]], dtype=np.float32), np.empty(tiling.slot_bytes, dtype=np.uint8))
