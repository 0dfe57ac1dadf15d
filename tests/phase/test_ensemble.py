"""Many starts become one density: those that found the same are found, aligned and averaged."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from orienteer.errors import OrienteerError
from orienteer.phase.alignment import shifted
from orienteer.phase.ensemble import (
    Cluster,
    Clusters,
    average_cluster,
    centre_of_mass,
    cluster_starts,
    threshold_of,
)
from orienteer.phase.half_grid import density_of, half_grid_shells, transform_of

Blobs = Callable[..., NDArray[np.float64]]
Everywhere = Callable[[int], NDArray[np.bool_]]
N = 24


def scattered(density: NDArray[Any], rng: np.random.Generator, noise: float = 0.0) -> NDArray[np.float32]:
    """The density somewhere in the box, in either hand and sign, with noise."""
    transform = transform_of(density)
    handed = np.conj(transform) if rng.random() < 0.5 else transform
    moved = density_of(shifted(handed, rng.uniform(-10, 10, 3))) * rng.choice([-1, 1])
    return (moved + noise * rng.normal(size=density.shape)).astype(np.float32)


@pytest.fixture
def inner() -> NDArray[np.bool_]:
    """Voxels in which the blobs have something."""
    return np.array((half_grid_shells(N) < 8) & (half_grid_shells(N) >= 0))


def test_starts_that_found_the_same_are_one_cluster_in_any_place_and_hand(
    blobs: Blobs, inner: NDArray[np.bool_]
) -> None:
    rng = np.random.default_rng(0)
    starts = [scattered(blobs(N, seed=0), rng, 0.003) for _ in range(7)]
    starts += [scattered(blobs(N, seed=1), rng, 0.003) for _ in range(3)]
    starts += [scattered(blobs(N, seed=seed), rng, 0.003) for seed in (2, 3)]
    scores = np.array([5, 9, 5, 5, 5, 5, 5, 6, 6, 6, 1, 2.0])
    found = cluster_starts(transform_of(np.stack(starts)), inner, scores)
    assert sorted(found.clusters[0].members) == [7, 8, 9]  # fewer, but better in the mean
    assert sorted(found.clusters[1].members) == [0, 1, 2, 3, 4, 5, 6]
    assert found.clusters[1].leader == 1
    assert found.share == pytest.approx(0.25)
    same = found.agreement[:7, :7]
    assert same.min() > 0.9
    assert found.agreement[:7, 7:].max() < 0.75
    np.testing.assert_allclose(found.agreement, found.agreement.T, atol=1e-5)
    assert any("Only 3 of 12" in remark for remark in found.remarks())
    assert any("Another density was found by 7 starts" in remark for remark in found.remarks())


def test_a_lucky_start_alone_does_not_lead_away_from_what_the_others_found(
    blobs: Blobs, inner: NDArray[np.bool_]
) -> None:
    rng = np.random.default_rng(1)
    starts = [scattered(blobs(N, seed=0), rng) for _ in range(5)] + [scattered(blobs(N, seed=1), rng)]
    found = cluster_starts(transform_of(np.stack(starts)), inner, [1, 1, 1, 1, 1, 1.2])
    assert sorted(found.clusters[0].members) == [0, 1, 2, 3, 4]


def test_starts_that_all_differ_are_said_to(blobs: Blobs, inner: NDArray[np.bool_]) -> None:
    rng = np.random.default_rng(2)
    noise = rng.normal(size=(5, N, N, N)).astype(np.float32)
    found = cluster_starts(transform_of(noise), inner, [1, 2, 3, 5, 4])
    assert found.clusters[0].members == (3,)
    assert found.remarks() == [
        "No two starts agree: the density is that of the best start, and should not be trusted."
    ]


def test_a_start_without_a_score_is_the_last_to_lead(blobs: Blobs, inner: NDArray[np.bool_]) -> None:
    starts = np.stack([blobs(N, seed) for seed in (0, 1)])
    found = cluster_starts(transform_of(starts), inner, [np.nan, -4.0])
    assert found.clusters[0].leader == 1


def test_an_empty_start_belongs_to_no_other(blobs: Blobs, inner: NDArray[np.bool_]) -> None:
    starts = np.stack([blobs(N), np.zeros((N, N, N)), blobs(N)])
    found = cluster_starts(transform_of(starts), inner, [1.0, 3.0, 2.0])
    assert found.clusters[0].members == (2, 0)


def test_an_empty_start_is_not_shown_where_others_found_something(
    blobs: Blobs, inner: NDArray[np.bool_]
) -> None:
    starts = np.stack([np.zeros((N, N, N)), blobs(N, seed=0), blobs(N, seed=1)])
    found = cluster_starts(transform_of(starts), inner, np.array([9.0, 5.0, 6.0]))
    assert found.clusters[0].members == (2,)
    assert [cluster.members for cluster in found.clusters] == [(2,), (1,), (0,)]


def test_empty_starts_and_scores_that_do_not_fit_are_refused(blobs: Blobs, inner: NDArray[np.bool_]) -> None:
    with pytest.raises(OrienteerError, match="empty density"):
        cluster_starts(np.zeros((2, N, N, N // 2 + 1), complex), inner, [1, 2])
    with pytest.raises(OrienteerError, match="scores"):
        cluster_starts(transform_of(blobs(N)[None]), inner, [1, 2])


@pytest.mark.parametrize(
    ("agreement", "low", "high"),
    [
        ([0.97, 0.91, 0.95], 0.59, 0.9),  # all found the same
        ([0.1, 0.05, 0.2], 0.59, 0.61),  # none did
        ([0.85, 0.8, 0.65, 0.62], 0.65, 0.8),
        ([0.99, 0.99, 0.68, 0.64], 0.68, 0.99),
        (np.linspace(0.65, 0.8, 30), 0.59, 0.65),  # data that end in noise
        ([*np.linspace(0.75, 0.85, 400), *[0.2] * 19], 0.59, 0.75),
        ([], 0.59, 0.61),
    ],
)
def test_the_threshold_lies_between_two_groups_where_there_are_two(
    agreement: Any, low: float, high: float
) -> None:
    assert low < threshold_of(agreement) < high


def test_the_mean_is_not_blurred_and_lies_in_the_middle(blobs: Blobs, inner: NDArray[np.bool_]) -> None:
    rng = np.random.default_rng(3)
    truth = blobs(N)
    starts = np.stack([scattered(truth, rng) for _ in range(8)])
    average = average_cluster(starts, np.abs(starts) > 0.3, inner, range(8))
    np.testing.assert_allclose(centre_of_mass(average.density), [N // 2] * 3, atol=0.05)
    assert average.density.dtype == np.float32
    assert average.density.max() > 0.97 * truth.max() * 0.95
    handed = [transform_of(truth), np.conj(transform_of(truth))]
    centred = [density_of(shifted(one, N // 2 - centre_of_mass(density_of(one)))) for one in handed]
    errors = [np.abs(average.density - one).max() for one in centred]
    assert min(errors) < 0.03 * truth.max()
    overlap = (average.support & (average.density > 0.3)).sum() / (
        average.support | (average.density > 0.3)
    ).sum()
    assert overlap > 0.95


def test_starts_with_different_supports_have_the_one_that_most_of_them_share(
    blobs: Blobs, inner: NDArray[np.bool_]
) -> None:
    truth = blobs(N)
    levels = (0.1, 0.3, 0.3, 0.3, 0.6)
    supports = np.stack([truth > level for level in levels])
    starts = np.where(supports, truth, 0).astype(np.float32)
    average = average_cluster(starts, supports, inner, range(5), centred=False)
    assert average.support.sum() == pytest.approx((truth > 0.3).sum(), rel=0.03)
    assert (average.support & (truth > 0.3)).sum() > 0.95 * average.support.sum()


def test_noise_of_the_starts_averages_out(blobs: Blobs, inner: NDArray[np.bool_]) -> None:
    rng = np.random.default_rng(4)
    truth = blobs(N)
    starts = np.stack([scattered(truth, rng, noise=0.02) for _ in range(16)])
    one = average_cluster(starts, starts > 0.3, inner, [0])
    many = average_cluster(starts, starts > 0.3, inner, range(16))
    outside = np.zeros((N, N, N), bool)
    outside[:3] = True
    assert many.density[outside].std() < 0.3 * one.density[outside].std()


def test_a_symmetric_particle_stays_where_it_was(blobs: Blobs, inner: NDArray[np.bool_]) -> None:
    starts = np.stack([blobs(N, at=(2.0, 0.0, 0.0)), blobs(N, at=(2.0, 0.0, 0.5))])
    average = average_cluster(starts, starts > 0.3, inner, [0, 1], centred=False)
    np.testing.assert_allclose(centre_of_mass(average.density), centre_of_mass(starts[0]), atol=0.02)


def test_one_start_is_its_own_mean(blobs: Blobs, inner: NDArray[np.bool_]) -> None:
    average = average_cluster(blobs(N)[None], blobs(N)[None] > 0.3, inner, [0], centred=False)
    np.testing.assert_allclose(average.density, blobs(N), atol=1e-5)
    lone = Clusters((Cluster((0,), (1.0,), 0.6, 1.0),), np.ones((1, 1)), np.ones(1))
    assert "only one start" in lone.remarks()[0]


def test_the_centre_of_mass_is_found_across_the_edge_of_the_box(blobs: Blobs) -> None:
    moved = np.roll(blobs(N), (N // 2, 3, -4), (0, 1, 2))
    difference = centre_of_mass(moved) - centre_of_mass(blobs(N)) - [N // 2, 3, -4]
    np.testing.assert_allclose(np.mod(difference + N / 2, N) - N / 2, 0, atol=1e-9)


@pytest.mark.gpu
def test_the_gpu_finds_the_same_clusters_and_mean(blobs: Blobs, inner: NDArray[np.bool_]) -> None:
    import cupy

    rng = np.random.default_rng(5)
    starts = np.stack([scattered(blobs(N, seed=s // 3), rng, 0.003) for s in range(6)])
    scores = [3, 2, 1, 0, 0, 0]
    expected = cluster_starts(transform_of(starts), inner, scores)
    on_gpu = cupy.asarray(starts)
    found = cluster_starts(transform_of(on_gpu), cupy.asarray(inner), scores)
    assert [c.members for c in found.clusters] == [c.members for c in expected.clusters]
    members = expected.clusters[0].members
    mean = average_cluster(on_gpu, on_gpu > 0.3, cupy.asarray(inner), members)
    on_cpu = average_cluster(starts, starts > 0.3, inner, members)
    np.testing.assert_allclose(mean.density.get(), on_cpu.density, atol=2e-3)
