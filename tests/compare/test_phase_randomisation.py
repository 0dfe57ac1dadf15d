"""Agreement that only the mask brings is found and taken away; real agreement stays."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from orienteer.compare.fsc import half_transform
from orienteer.compare.phase_randomisation import masked_fsc, randomise_phases
from orienteer.compute.arrays import import_cupy
from orienteer.errors import OrienteerError

N = 40
DISTANCE = np.linalg.norm(np.indices((N, N, N)) - N // 2, axis=0)


def halves(detail: float, seed: int = 1) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A particle of coarse blobs, and fine detail of a strength, each with noise of its own."""
    draw = np.random.default_rng(seed)
    inside = DISTANCE < 10
    coarse = gaussian_filter(draw.normal(size=(N,) * 3) * inside, 3)
    fine = draw.normal(size=(N,) * 3) * inside
    particle = coarse / coarse.std() + detail * fine
    a, b = (particle + draw.normal(size=(N,) * 3) for _ in range(2))
    return a, b


TIGHT = ((DISTANCE < 7) * np.random.default_rng(2).random((N, N, N)) > 0.5).astype(np.float32)
SOFT = np.clip((14 - DISTANCE) / 4, 0, 1).astype(np.float32)


def test_a_sharp_mask_shams_agreement_and_the_correction_removes_it() -> None:
    several = [masked_fsc(*halves(0.0, seed), TIGHT, seed=3) for seed in range(8)]
    masked, random, corrected = (
        np.mean([getattr(found, name).correlation[10:].mean() for found in several])
        for name in ("masked", "random", "corrected")
    )
    assert masked > 0.1
    assert random == pytest.approx(masked, abs=0.04)
    assert abs(corrected) < 0.04
    assert all(found.random_from_inv_A is not None for found in several)


def test_real_detail_survives() -> None:
    found = masked_fsc(*halves(1.0), SOFT, seed=3)
    outer = slice(8, None)
    corrected, unmasked = (x.correlation[outer].mean() for x in (found.corrected, found.unmasked))
    assert corrected > unmasked + 0.05
    assert corrected == pytest.approx(found.masked.correlation[outer].mean(), abs=0.05)


def test_shells_within_the_good_agreement_are_left_as_they_are() -> None:
    found = masked_fsc(*halves(0.0), SOFT)
    first = round(found.random_from_inv_A * N)  # type: ignore[operator]
    assert first > 1
    np.testing.assert_array_equal(
        found.corrected.correlation[: first + 2], found.masked.correlation[: first + 2]
    )
    same = halves(0.0)[0]
    assert masked_fsc(same, same, SOFT).random_from_inv_A is None


def test_the_same_seed_gives_the_same_curve() -> None:
    one, two, other = (masked_fsc(*halves(0.0), SOFT, seed=s).corrected.correlation for s in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("n", [9, 10])
def test_random_phases_keep_the_moduli_and_the_inner_shells(n: int) -> None:
    values = np.random.default_rng(1).normal(size=(n, n, n))
    found = randomise_phases(values, 3, np.random.default_rng(2))
    before, after = half_transform(values), half_transform(found)
    np.testing.assert_allclose(abs(after), abs(before), atol=1e-9)
    x, y, z = np.indices(before.shape)
    radius = np.sqrt(np.minimum(x, n - x) ** 2 + np.minimum(y, n - y) ** 2 + z**2)
    np.testing.assert_allclose(after[radius < 2.5], before[radius < 2.5], atol=1e-9)
    assert np.corrcoef(np.angle(after[radius >= 2.5]), np.angle(before[radius >= 2.5]))[0, 1] < 0.3


def test_wrong_arguments_are_told() -> None:
    a, b = halves(0.0)
    with pytest.raises(OrienteerError, match="the mask has 8 voxels"):
        masked_fsc(a, b, np.ones((8, 8, 8)))
    with pytest.raises(OrienteerError, match="at least once"):
        masked_fsc(a, b, SOFT, n_draws=0)


@pytest.mark.gpu
def test_the_gpu_gives_the_same_curve() -> None:
    cupy = import_cupy()
    assert cupy is not None
    a, b = halves(0.5)
    found = masked_fsc(*(cupy.asarray(x) for x in (a, b, SOFT)), seed=1)
    wanted = masked_fsc(a, b, SOFT, seed=1)
    np.testing.assert_allclose(found.corrected.correlation, wanted.corrected.correlation, atol=1e-6)
