"""Agreement that only the mask brings is found and taken away; real agreement stays."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from orienteer.compare.fsc import (
    fourier_shell_correlation,
    from_half_transform,
    half_radius,
    half_transform,
)
from orienteer.compare.phase_randomisation import masked_fsc, randomised
from orienteer.compare.round_part import RoundPart
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


def body(kind: str, draw: np.random.Generator) -> NDArray[np.float64]:
    """A solid body with sharp walls and texture inside, or soft balls that end nowhere."""
    if kind == "solid":
        lumps = gaussian_filter(draw.normal(size=(N,) * 3), 4)
        inside = 0.6 * lumps / lumps.std() > (DISTANCE - 9) / 3
        return inside * np.maximum(gaussian_filter(1 + 0.8 * draw.normal(size=(N,) * 3), 0.7), 0.05)
    places = draw.normal(size=(25, 3))
    places *= (8 * draw.uniform(size=25) ** (1 / 3) / np.linalg.norm(places, axis=1))[:, None]
    points = np.moveaxis(np.indices((N, N, N)) - N // 2, 0, -1)
    widths, weights = draw.uniform(2, 3, 25), draw.uniform(0.5, 1.5, 25)
    return sum(
        weight * np.exp(-((points - place) ** 2).sum(-1) / 2 / width**2)
        for place, width, weight in zip(places, widths, weights, strict=True)
    )


def phased(
    truth: NDArray[np.float64], noise_shell: int, draw: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """A density from noisy data, cut to a support of its own as phasing does it, and that support.

    noise_shell : where the noise of the data, the same everywhere, is as strong as they are.
    """
    own, noise = half_transform(truth), half_transform(draw.normal(size=truth.shape))
    level = np.mean(np.abs(own[np.floor(half_radius(N) + 0.5) == noise_shell]) ** 2) ** 0.5
    data = own + level / N**1.5 * noise
    density = from_half_transform(data, N)
    blurred = gaussian_filter(density, 1.2)
    support = blurred > np.quantile(blurred, 0.94)
    for _ in range(40):
        found = half_transform(np.maximum(density * support, 0))
        density = from_half_transform(np.abs(data) * np.exp(1j * np.angle(found)), N)
    return np.maximum(density * support, 0), support


@cache
def two_halves(kind: str, seed: int) -> Any:
    """A body, and two densities of it from data of their own, each with its support."""
    draw = np.random.default_rng(seed)
    truth = body(kind, draw)
    return truth, *(phased(truth, 8, draw) for _ in range(2))


def ends_at(correlation: NDArray[np.float64]) -> int:
    """The first shell below 0.143; the number of shells where there is none."""
    return int(np.append(np.flatnonzero(correlation[1:] < 0.143) + 1, len(correlation))[0])


def beyond_the_truth(kind: str, use_supports: bool) -> list[int]:
    """By how many shells the corrected curve of two halves goes further than they show the truth."""
    found = []
    for seed in range(3):
        truth, (a, first), (b, second) = two_halves(kind, seed)
        # With independent errors the correlation of halves is the product of theirs with the truth.
        shown = [fourier_shell_correlation(x, truth).correlation for x in (a, b)]
        supports = (first, second) if use_supports else None
        curves = masked_fsc(a, b, SOFT, supports=supports, seed=seed, random_from_inv_A=8 / N)
        found.append(ends_at(curves.corrected.correlation) - ends_at(shown[0] * shown[1]))
    return found


def test_a_soft_body_cut_by_like_supports_shams_agreement_and_the_correction_removes_it() -> None:
    assert np.median(beyond_the_truth("soft", use_supports=False)) > 8
    assert max(np.abs(beyond_the_truth("soft", use_supports=True))) <= 3


def test_supports_do_not_take_from_a_solid_body_what_its_data_show() -> None:
    assert max(np.abs(beyond_the_truth("solid", use_supports=True))) <= 2


def test_random_phases_are_told_only_where_phases_are_random() -> None:
    found = masked_fsc(*halves(0.0), SOFT)
    assert found.random_from_inv_A is not None
    is_random = found.random.q_inv_A >= found.random_from_inv_A
    np.testing.assert_array_equal(np.isnan(found.random.correlation), ~is_random)
    same = halves(0.0)[0]
    assert np.isnan(masked_fsc(same, same, SOFT).random.correlation).all()


def test_curves_end_at_the_edge_of_the_data_and_what_lies_beyond_changes_nothing() -> None:
    a, b = halves(1.0)
    edge = 12.5 / N
    found = masked_fsc(a, b, SOFT, edge_inv_A=edge, seed=1)
    for curve in (found.corrected, found.masked, found.unmasked, found.random):
        assert len(curve.q_inv_A) == len(curve.correlation) == len(curve.n_voxels) == 13
    spoilt = [x + 5 * _beyond(np.random.default_rng(3).normal(size=x.shape), 13) for x in (a, b)]
    again = masked_fsc(spoilt[0], spoilt[1], SOFT, edge_inv_A=edge, seed=1)
    np.testing.assert_allclose(again.corrected.correlation, found.corrected.correlation, atol=1e-9)


def _beyond(values: NDArray[np.float64], shell: int) -> NDArray[np.float64]:
    outside = half_radius(N) >= shell - 0.5
    return np.asarray(from_half_transform(half_transform(values) * outside, N))


def test_the_same_seed_gives_the_same_curve() -> None:
    one, two, other = (masked_fsc(*halves(0.0), SOFT, seed=s).corrected.correlation for s in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("n", [9, 10])
def test_random_phases_keep_moduli_shell_means_and_inner_shells(n: int) -> None:
    values = np.random.default_rng(1).normal(size=(n, n, n))
    before = half_transform(values)
    round_part = RoundPart(before, np.array([4.0, 3.5, 4.2]), 3, n // 2)
    after = half_transform(randomised(values, 3, np.random.default_rng(2), round_part))
    x, y, z = np.indices(before.shape)
    radius = np.sqrt(np.minimum(x, n - x) ** 2 + np.minimum(y, n - y) ** 2 + z**2)
    np.testing.assert_allclose(after[radius < 2.5], before[radius < 2.5], atol=1e-9)
    same = round_part.of(before)
    beyond = (radius >= 2.5) & (radius < n // 2 - 0.5)
    rests = [np.abs(transform - same)[beyond] for transform in (before, after)]
    np.testing.assert_allclose(rests[1], rests[0], atol=1e-9)
    assert np.corrcoef(np.angle(after[beyond]), np.angle(before[beyond]))[0, 1] < 0.3


def test_two_bodies_that_are_alike_only_in_being_round_do_not_agree() -> None:
    """What noise phases to: a ball with lumps of its own."""
    beyond = []
    for seed in range(2):
        draw = np.random.default_rng(seed)
        ball = np.clip(11 - DISTANCE, 0, 1)
        lumps = [0.2 * gaussian_filter(draw.normal(size=(N,) * 3), 1.0) / 0.1 for _ in range(2)]
        a, b = ((1 + lump) * ball for lump in lumps)
        found = masked_fsc(a, b, SOFT, supports=(ball > 0, ball > 0), seed=seed, random_from_inv_A=0.0)
        assert found.masked.correlation[1:6].mean() > 0.6
        beyond.append(np.nan_to_num(found.corrected.correlation[5:]).mean())
    assert np.abs(beyond).max() < 0.143


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
