"""Halves that agree on hardly more than the size of the particle have found nothing in it."""

import numpy as np
import pytest

from orienteer.run.coarse_agreement import coarse_agreement_in_words
from orienteer.volume.volume import Volume


@pytest.mark.parametrize(
    ("agrees_to_A", "given_A", "told_A", "is_coarse"),
    [
        (421.0, 300.0, 0.0, True),
        (421.0, 0.0, 300.0, True),
        (140.0, 300.0, 100.0, False),
        (421.0, 0.0, 0.0, False),
        (None, 300.0, 0.0, False),
    ],
)
def test_agreement_coarser_than_half_the_diameter_is_told(
    agrees_to_A: float | None, given_A: float, told_A: float, is_coarse: bool
) -> None:
    metadata = {"diameter_A": told_A} if told_A else {}
    volumes = [Volume(np.zeros((3, 3, 3)), 1e-3, "reciprocal", metadata=metadata)]
    words = coarse_agreement_in_words({"agrees_to_A": agrees_to_A}, {"diameter_A": given_A}, volumes)
    assert bool(words) == is_coarse
    assert "421 A, of a particle of 300 A" in words or not is_coarse
