"""An intensity on fewer voxels is the same intensity."""

import numpy as np
import pytest

from orienteer.compare.shells import shell_correlation
from orienteer.fourier.sampled_transform import SampledTransform
from orienteer.particle.named_bodies import random_blobs, virus
from orienteer.phase.fewer_voxels import BOX, with_fewer_voxels

DIAMETER_A = 300.0
BODIES = {"blobs": random_blobs(DIAMETER_A, 30, 1), "virus": virus(DIAMETER_A)}


def intensity(body: str, n: int, voxel_inv_A: float) -> np.ndarray:
    """|F|^2 on a cube (n, n, n), centre at n // 2."""
    axis = (np.arange(n) - n // 2) * voxel_inv_A
    points = np.stack([x.ravel() for x in np.meshgrid(axis, axis, axis, indexing="ij")], axis=1)
    transform = SampledTransform.from_particle(BODIES[body], 1.8 * n / 2 * voxel_inv_A)
    return np.asarray(transform.intensity(points, np.eye(3)), dtype=np.float64).reshape(n, n, n)


def distance(n: int) -> np.ndarray:
    axis = np.arange(n) - n // 2
    return np.sqrt(axis[:, None, None] ** 2.0 + axis[:, None] ** 2 + axis**2)


@pytest.mark.parametrize("body", list(BODIES))
def test_it_is_the_intensity_at_the_new_voxels(body: str) -> None:
    n, voxel = 61, 1 / (4 * DIAMETER_A)
    cube = intensity(body, n, voxel)
    cube[(distance(n) < 3) | (distance(n) > 29)] = np.nan
    fewer = with_fewer_voxels(cube, voxel, DIAMETER_A)
    assert fewer is not None
    m = len(fewer.cube)
    assert m % 2 == 1
    assert 1 / fewer.voxel_inv_A == pytest.approx(BOX * DIAMETER_A, rel=0.05)
    assert m * fewer.voxel_inv_A == pytest.approx(n * voxel)  # the same resolution
    truth = intensity(body, m, fewer.voxel_inv_A)
    known = np.isfinite(fewer.cube)
    wrong = np.abs(np.sqrt(fewer.cube[known]) - np.sqrt(truth[known])).sum()
    assert wrong < 0.03 * np.sqrt(truth[known]).sum()
    shells = shell_correlation(np.where(known, truth, np.nan), fewer.cube).correlation
    assert np.nanmin(shells[5:-2]) > 0.98  # further in, a virus is round
    # What was not measured still is not, to half a voxel.
    radius = distance(m) * n / m
    assert np.isnan(fewer.cube[(radius < 2) | (radius > 30)]).all()
    assert np.isfinite(fewer.cube[(radius > 4) & (radius < 28)]).all()


def test_noise_of_single_voxels_becomes_less_as_told() -> None:
    n, voxel = 61, 1 / (4 * DIAMETER_A)
    noise = np.random.default_rng(1).normal(1.0, 0.1, (n, n, n))
    noise = (noise + noise[::-1, ::-1, ::-1]) / 2**0.5 + 1 - 2**0.5
    fewer = with_fewer_voxels(noise, voxel, DIAMETER_A)
    assert fewer is not None
    middle = distance(len(fewer.cube)) < 15
    assert fewer.cube[middle].std() == pytest.approx(0.1 * fewer.noise, rel=0.15)


def test_coarse_voxels_stay() -> None:
    assert with_fewer_voxels(np.ones((31, 31, 31)), 1 / (2.5 * DIAMETER_A), DIAMETER_A) is None
