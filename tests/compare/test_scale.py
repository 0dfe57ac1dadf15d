"""A wrong size is told to a per cent, and a right one not at all."""

import numpy as np
import pytest

from orienteer.compare.densities import align_densities
from orienteer.compare.scale import better_scale
from orienteer.compare.structure_density import density_of
from orienteer.particle.named_bodies import random_blobs
from orienteer.volume.volume import Volume


@pytest.fixture(scope="module")
def density() -> Volume:
    return density_of(random_blobs(90, 10, seed=4), 25, 5.0)


def test_a_size_wrong_by_three_per_cent_is_told(density: Volume) -> None:
    slightly = Volume(density.values, 1.03 * 5.0)
    fit = better_scale(align_densities(density, slightly), slightly)
    assert fit is not None
    assert fit.scale == pytest.approx(1 / 1.03, abs=0.005)
    assert fit.correlation > fit.before


def test_noise_is_no_reason_to_doubt_the_size(density: Volume) -> None:
    noise = 0.5 * density.values.std() * np.random.default_rng(1).normal(size=density.shape)
    noisy = density.with_values((density.values + noise).astype(np.float32))
    assert better_scale(align_densities(density, noisy), noisy) is None
