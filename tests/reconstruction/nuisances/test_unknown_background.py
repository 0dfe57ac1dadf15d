"""Background from the frames alone: uneven from the means of pixels, even from the darkest places."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from orienteer.compare.shells import n_shells, shell_index
from orienteer.reconstruction.nuisances.unknown_background import even_share, uneven_background

RNG = np.random.default_rng(2)


def square(n: int = 40) -> np.ndarray:
    axis = (np.arange(n) - (n - 1) / 2) / n
    x, y = np.meshgrid(axis, axis)
    return np.stack([x.ravel(), y.ravel(), np.zeros(n * n)], axis=1)


def test_what_differs_around_a_ring_is_background() -> None:
    q = square()
    correction = 1 + 0.2 * np.cos(5 * q[:, 0])
    isotropic = correction * 2 * np.exp(-6 * np.linalg.norm(q, axis=1))
    uneven = 0.5 * np.maximum(q[:, 0], 0)
    n_frames = np.full(len(q), 4000.0)
    photons = RNG.poisson((isotropic + uneven) * n_frames).astype(float)
    found = uneven_background(q, correction, photons, n_frames)
    assert (found >= 0).all()
    assert np.corrcoef(found, uneven)[0, 1] > 0.95
    assert found.sum() == pytest.approx(uneven.sum(), rel=0.25)


def test_nothing_is_found_where_there_is_nothing_and_hot_pixels_are() -> None:
    q = square()
    expected = 2 * np.exp(-6 * np.linalg.norm(q, axis=1))
    n_frames = np.full(len(q), 4000.0)
    photons = RNG.poisson(expected * n_frames).astype(float)
    photons[77] += 8000
    found = uneven_background(q, np.ones(len(q)), photons, n_frames)
    assert np.delete(found, 77).sum() < 0.06 * expected.sum()
    assert found[77] == pytest.approx(2.0, rel=0.3)


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_what_is_never_dark_is_background(share: float) -> None:
    n = 41
    field = [gaussian_filter(RNG.normal(size=(n, n, n)), 1.5) for _ in range(2)]
    speckles = field[0] ** 2 + field[1] ** 2
    index = shell_index(n)
    shells = n_shells(n)
    mean = np.bincount(index[index >= 0], speckles[index >= 0]) / np.bincount(index[index >= 0])
    relative = np.where(index >= 0, speckles / mean[np.maximum(index, 0)], 1.0)
    found = even_share(share + (1 - share) * relative, np.ones(shells), 4.0, shells)
    assert found[5:] == pytest.approx(share, abs=0.08)


def test_the_bright_centre_of_a_particle_is_not_background() -> None:
    n = 41
    shells = n_shells(n)
    index = shell_index(n)
    model = np.ones((n, n, n))
    outside = index > 6
    model[outside] = RNG.exponential(size=outside.sum())
    profile = np.exp(-0.5 * np.arange(shells))
    assert even_share(model, profile, 4.0, shells).max() < 0.05
