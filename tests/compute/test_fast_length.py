"""Boxes are made larger until they transform quickly, and no more."""

import pytest

from orienteer.compute.fast_length import fast_length


@pytest.mark.parametrize("least", [1, 17, 101, 113, 161, 499])
def test_the_edge_is_the_next_one_of_small_factors(least: int) -> None:
    def is_quick(n: int) -> bool:
        for factor in (2, 3, 5):
            while n % factor == 0:
                n //= factor
        return n == 1

    found = fast_length(least)
    assert found == next(n for n in range(least, 2 * least + 1) if is_quick(n))
