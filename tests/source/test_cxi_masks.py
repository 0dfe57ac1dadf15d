"""CXI's mask bits: which forbid a pixel, which only keep it from orienting, which say nothing against it."""

import numpy as np
import pytest

from orienteer.detector.masks import PixelUse
from orienteer.source.cxi_masks import bits_of, levels_of

NEVER = (0x1, 0x2, 0x4, 0x8, 0x10, 0x40, 0x80, 0x200, 0x400)
STATUS = (0x20, 0x800, 0x1000, 0x2000, 0x4000)


@pytest.mark.parametrize("dtype", [np.uint16, np.int32, np.uint32, np.int64, np.uint64])
def test_each_bit_has_its_use(dtype) -> None:
    assert (levels_of(np.array(NEVER, dtype)) == PixelUse.NEVER).all()
    assert (levels_of(np.array(STATUS, dtype)) == PixelUse.ORIENT_AND_MERGE).all()
    assert levels_of(np.array([0, 0x100, sum(STATUS), 0x100 | 0x800], dtype)).tolist() == [0, 1, 0, 1]


def test_one_bad_bit_among_others_forbids() -> None:
    every = np.arange(2**15)
    bad = (every & sum(NEVER)) != 0
    levels = levels_of(every)
    assert np.array_equal(levels == PixelUse.NEVER, bad)
    assert np.array_equal(levels == PixelUse.MERGE_ONLY, ~bad & ((every & 0x100) != 0))


def test_bits_that_are_not_of_cxi_forbid() -> None:
    assert levels_of(np.array([0x8000, 0x10000, 2**31, 2**63], np.uint64)).tolist() == [2, 2, 2, 2]
    assert levels_of(np.array([-1], np.int32)).tolist() == [2]


def test_a_boolean_mask_is_true_for_good() -> None:
    assert levels_of(np.array([True, False])).tolist() == [0, 2]


def test_levels_survive_as_bits() -> None:
    levels = np.array([0, 1, 2, 0], np.uint8)
    assert np.array_equal(levels_of(bits_of(levels)), levels)
