"""Slots of tiles: every number comes back as it was."""

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
def test_numbers_are_kept_bit_for_bit_and_read_in_place(by_pixel: bool) -> None:
    tiling = Tiling.even(5, 2, 7, by_pixel=by_pixel)
    slot = np.zeros(tiling.slot_bytes, dtype=np.uint8)
    for tile in range(len(tiling)):
        values = np.random.default_rng(tile).normal(size=tiling.shape(tile)).astype(np.float32)
        tiling.write(tile, values, slot)
        found = tiling.read(tile, slot)
        assert np.array_equal(found, values)
        assert np.shares_memory(found, slot)


def test_what_cannot_be_kept_is_told() -> None:
    with pytest.raises(OrienteerError, match="cannot be kept"):
        Tiling((0,), 3)
