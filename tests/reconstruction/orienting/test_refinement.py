"""Refinement: from the nearest pose of a grid to what the photons of a frame can tell, and merges there."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from orienteer.compute.arrays import namespace_of_device, to_numpy
from orienteer.likelihood.frames import FrameBatch
from orienteer.likelihood.negative_binomial import NegativeBinomial
from orienteer.likelihood.pixel_model import PixelModel
from orienteer.likelihood.poisson import Poisson
from orienteer.likelihood.product import product_of
from orienteer.orientation.distance import angular_distance_deg
from orienteer.orientation.grids import make_grid
from orienteer.orientation.quaternion import random_uniform, to_matrix
from orienteer.orientation.six_hundred_cell import covering_bound_deg
from orienteer.reconstruction.frames.batch import Batch, Group
from orienteer.reconstruction.orienting import refinement
from orienteer.reconstruction.orienting.deposit import Deposit
from orienteer.reconstruction.orienting.expander import Expander
from orienteer.reconstruction.orienting.refinement import (
    CLOUD,
    CLOUD_LOG_WEIGHTS,
    STENCIL,
    local_scores,
    merge_refined,
    refine_poses,
    turned,
)
from orienteer.slicing.patches import PointPatches
from orienteer.slicing.sums import make_sums
from orienteer.slicing.trilinear import slice_volume
from orienteer.source.patterns import Patterns

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
EDGE, RADIUS, N_PIXELS, LEVEL = 41, 17, 1500, 6


@dataclass
class World:
    """Frames of known poses, and the models they come from."""

    models: NDArray[np.float32]
    points: NDArray[np.float32]
    weights: NDArray[np.float64]
    poses: NDArray[np.float64]
    which: NDArray[np.int64]
    nearest: NDArray[np.float64]
    expander: Expander
    batch: Batch
    likelihood: Any

    def expected(self, poses: NDArray[np.float64]) -> NDArray[np.float64]:
        """Photons (F, P) of every frame at poses (F, 4)."""
        rows = np.swapaxes(to_matrix(poses), 1, 2).astype(np.float32)
        pairs = zip(rows, self.which, strict=True)
        slices = [slice_volume(self.models[m], self.points, row[None])[0] for row, m in pairs]
        return np.stack(slices).astype(np.float64) * self.weights

    def least_error_deg(self) -> NDArray[np.float64]:
        """Root of the trace of the inverse Fisher information of every frame, (F,): no estimate is better."""
        step = np.radians(0.5)
        slopes = []
        for axis in np.eye(3):
            ahead, behind = (self.expected(turned(self.poses, sign * step * axis[None])) for sign in (1, -1))
            slopes.append((ahead - behind) / (2 * step))
        slope = np.stack(slopes, axis=1)
        information = np.einsum("fap,fbp,fp->fab", slope, slope, 1 / self.expected(self.poses))
        return np.degrees(np.sqrt(np.trace(np.linalg.inv(information), axis1=1, axis2=2)))


def make_world(
    photons: float, n_frames: int = 60, n_models: int = 1, device: Any = "cpu", layout: Any = "sparse",
    dispersion: float | None = None, n_groups: int = 1,
) -> World:  # fmt: skip
    from scipy.ndimage import gaussian_filter

    xp = namespace_of_device(device)
    rng = np.random.default_rng(11)
    models = [gaussian_filter(rng.normal(size=(EDGE,) * 3), 1.8) for _ in range(n_models)]
    models = [m + m[::-1, ::-1, ::-1] for m in models]
    models = np.stack([np.exp(0.9 * m / m.std()) for m in models]).astype(np.float32)
    radius, angle = RADIUS * np.sqrt(rng.random(N_PIXELS)), rng.uniform(0, 2 * np.pi, N_PIXELS)
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle), 0.012 * radius**2], axis=1)
    points = points.astype(np.float32)
    weights = np.full(N_PIXELS, photons / N_PIXELS / models.mean()) * rng.uniform(0.8, 1.2, N_PIXELS)
    poses, which = random_uniform(n_frames, 2), rng.integers(0, n_models, n_frames)
    grid = make_grid("600-cell", LEVEL)
    nearest = grid.quaternions[grid.nearest(poses)[0]]
    pixel_weights = xp.asarray(weights.astype(np.float32))
    pixels = PixelModel(pixel_weights, pixel_weights, N_PIXELS)
    likelihood: Any = Poisson(pixels)
    if dispersion is not None:
        likelihood = NegativeBinomial(pixels, xp.full(N_PIXELS, dispersion, dtype=np.float32))
    expander = Expander(xp.asarray(models), PointPatches.of(points, device))
    world = World(models, points, weights, poses, which, nearest, expander, None, likelihood)  # type: ignore[arg-type]
    counts = rng.poisson(world.expected(poses)).astype(np.uint16)
    bounds = np.linspace(0, n_frames, n_groups + 1).astype(int)
    groups = []
    for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        frames = FrameBatch.prepare(
            Patterns(counts[first:last]), np.arange(N_PIXELS), N_PIXELS, device, layout
        )
        groups.append(Group(slice(first, last), frames, product_of(frames, "single"), 1.0))
    return replace(world, batch=Batch(np.arange(n_frames), tuple(groups), xp.ones(n_frames)))


def rms(angles: NDArray[np.float64]) -> float:
    return float(np.sqrt(np.mean(np.square(angles))))


def test_the_stencil_sees_every_quadratic_form_alike() -> None:
    moments = np.einsum("na,nb->ab", STENCIL, STENCIL)
    np.testing.assert_allclose(moments, 4 * np.eye(3), atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(STENCIL[1:], axis=1), 1)


def test_the_cloud_stands_for_a_gaussian() -> None:
    p = np.exp(CLOUD_LOG_WEIGHTS - 0.5 * (CLOUD**2).sum(axis=1))
    assert p.sum() == pytest.approx(1)
    np.testing.assert_allclose(p @ CLOUD, 0, atol=1e-12)
    np.testing.assert_allclose(np.einsum("n,na,nb->ab", p, CLOUD, CLOUD), np.eye(3), atol=1e-12)


def test_conjugate_axes_have_the_covariance_of_the_posterior() -> None:
    """Along the axes of one parabola the next sees no mixed terms, so that six directions tell all."""
    world = make_world(3000.0)
    frames = np.arange(len(world.poses))
    refined = refine_poses(
        world.likelihood, world.expander, world.batch, frames, world.which, world.nearest, 5.0, n_steps=6
    )
    covariance = np.einsum("fai,fbi->fab", refined.axes_rad, refined.axes_rad)
    # Half a standard deviation away along any direction the score has fallen by an eighth of a nat.
    directions = random_uniform(20, 4)[:, :3]
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    sigma = 1 / np.sqrt(np.einsum("na,fab,nb->fn", directions, np.linalg.inv(covariance), directions))
    away = sigma[..., None] * directions
    both = [turned(refined.quaternions[:, None], sign * 0.5 * away) for sign in (1, -1)]
    args = world.likelihood, world.expander, world.batch, frames, world.which
    falls = [refined.score[:, None] - local_scores(*args, poses) for poses in both]
    assert np.mean(falls) == pytest.approx(0.125, rel=0.1)
    assert np.quantile((falls[0] + falls[1]) / 2, [0.1, 0.9]) == pytest.approx([0.125, 0.125], abs=0.06)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("photons", [300.0, 1000.0, 3000.0, 10000.0])
def test_errors_fall_from_the_grid_to_the_noise(device: Any, photons: float) -> None:
    world = make_world(photons, device=device)
    step = covering_bound_deg(LEVEL)
    frames = np.arange(len(world.poses))
    refined = refine_poses(
        world.likelihood, world.expander, world.batch, frames, world.which, world.nearest, step
    )
    found = to_numpy(refined.quaternions)
    before, after = (rms(angular_distance_deg(q, world.poses)) for q in (world.nearest, found))
    least = rms(world.least_error_deg())
    assert after < 1.25 * least + 0.03
    assert after < before or photons < 500
    # Its axes say how wrong a pose is to be expected.
    spread = np.sqrt((to_numpy(refined.axes_rad) ** 2).sum(axis=(1, 2)))
    assert rms(np.degrees(spread)) == pytest.approx(least, rel=0.25)


def test_a_climb_never_ends_lower_than_it_began() -> None:
    world = make_world(500.0)
    anywhere = random_uniform(len(world.poses), 7)
    args = world.likelihood, world.expander, world.batch, np.arange(len(world.poses)), world.which
    begun = local_scores(*args, anywhere[:, None])[:, 0]
    refined = refine_poses(*args, anywhere, 5.0)
    assert np.all(refined.score >= begun)
    ended = local_scores(*args, refined.quaternions[:, None])[:, 0]
    np.testing.assert_allclose(ended, refined.score, atol=1e-3)


@pytest.mark.parametrize("layout", ["sparse", "dense"])
def test_scores_are_those_of_the_formula(layout: Any) -> None:
    world = make_world(400.0, n_models=2, layout=layout, dispersion=0.1, n_groups=3)
    deviation = deviation_from_formula(world, 0.1)
    np.testing.assert_allclose(deviation, deviation[:, :1] + np.zeros_like(deviation), atol=5e-3)


@pytest.mark.parametrize("layout", ["sparse", "dense"])
@pytest.mark.parametrize("photons", [1e3, 1e5])
def test_bright_frames_are_scored_at_their_own_fluence_to_a_tenth_of_a_nat(
    layout: Any, photons: float
) -> None:
    """Frames of a group share slices elsewhere, to first order in how far their fluences differ."""
    world = make_world(photons, layout=layout, dispersion=0.05, n_groups=3)
    fluence = np.random.default_rng(4).uniform(0.7, 1.4, len(world.poses))
    groups = [
        replace(group, fluence=float(fluence[group.columns].mean()), is_even=False)
        for group in world.batch.groups
    ]
    world = replace(world, batch=replace(world.batch, groups=tuple(groups), fluence=fluence))
    deviation = deviation_from_formula(world, 0.05)
    assert np.abs(deviation - deviation[:, :1]).max() < 0.1


def deviation_from_formula(world: World, dispersion: float) -> NDArray[np.float64]:
    """Local scores at three poses of every frame, less those of all its pixels in float64, (F, 3)."""
    poses = turned(world.poses[:, None], 0.05 * np.eye(3)[None])
    frames = np.arange(len(world.poses))
    scores = local_scores(
        world.likelihood, world.expander, world.batch, frames, world.which, poses, tile_rows=25
    )
    counts = np.concatenate(
        [
            group.frames.dense
            if group.frames.dense is not None
            else np.array([np.bincount(p.pixel, p.count, N_PIXELS) for p in _each(group.frames.photons)])
            for group in world.batch.groups
        ]
    ).astype(np.float64)
    r = 1 / dispersion
    wanted = []
    for o in range(poses.shape[1]):
        expected = world.expected(poses[:, o]) * world.batch.fluence[:, None]
        wanted.append((counts * np.log(expected / (r + expected)) - r * np.log1p(expected / r)).sum(axis=1))
    return scores - np.stack(wanted, axis=1)


def _each(photons: Any) -> list[Any]:
    return [photons[d : d + 1] for d in range(len(photons))]


@pytest.mark.parametrize("device", DEVICES)
def test_merged_frames_lie_at_their_poses(device: Any) -> None:
    """Bright frames at true poses give the model back; all photons arrive."""
    world = make_world(20000.0, n_frames=40, device=device)
    xp = namespace_of_device(device)
    frames = np.arange(len(world.poses))
    refined = refine_poses(
        world.likelihood, world.expander, world.batch, frames, world.which, world.nearest, 5.0
    )
    deposit = Deposit([make_sums(EDGE, device)], None, xp.zeros(1))
    pixel_weights = xp.asarray(world.weights.astype(np.float32))
    perplexity = merge_refined(world.likelihood, world.expander, world.batch, refined, deposit, pixel_weights)
    sums = to_numpy(deposit.sums[0].finish())
    photons = float(world.batch.groups[0].frames.photons_total.sum())
    assert sums[..., 0].sum() == pytest.approx(photons, rel=1e-4)
    assert sums[..., 1].sum() == pytest.approx(len(frames) * world.weights.sum(), rel=1e-4)
    seen = sums[..., 1] > np.quantile(sums[..., 1][sums[..., 1] > 0], 0.5)
    solved = sums[seen, 0] / sums[seen, 1]
    assert np.corrcoef(solved, world.models[0][seen])[0, 1] > 0.97
    assert np.all(to_numpy(perplexity) <= len(CLOUD))


def test_faint_frames_stay_spread_over_their_cloud() -> None:
    perplexity, spread_deg = [], []
    for photons in (5.0, 3000.0):
        world = make_world(photons)
        frames = np.arange(len(world.poses))
        refined = refine_poses(
            world.likelihood, world.expander, world.batch, frames, world.which, world.nearest, 4.0
        )
        deposit = Deposit([make_sums(EDGE, "cpu")], None, np.zeros(1))
        found = merge_refined(
            world.likelihood, world.expander, world.batch, refined, deposit, world.weights.astype(np.float32)
        )
        perplexity.append(float(np.median(found)))
        longest = np.linalg.norm(refined.axes_rad, axis=1).max(axis=1)
        spread_deg.append(float(np.degrees(np.median(longest))))
    # The cloud of a sharp frame is a Gaussian of its own width, that of a faint one as wide as is allowed.
    assert 6 < perplexity[0] <= len(CLOUD)
    assert perplexity[1] == pytest.approx(5.74, rel=0.05)
    assert spread_deg[0] == pytest.approx(4.0, rel=0.01)
    assert spread_deg[1] < 1.0


def test_only_the_given_frames_are_merged() -> None:
    world = make_world(1000.0, n_frames=10, n_groups=2)
    some = np.array([1, 6, 8])
    refined = refine_poses(
        world.likelihood, world.expander, world.batch, some, world.which[some], world.nearest[some], 4.0
    )
    deposit = Deposit([make_sums(EDGE, "cpu")], None, np.zeros(1))
    perplexity = merge_refined(
        world.likelihood, world.expander, world.batch, refined, deposit, world.weights.astype(np.float32)
    )
    total = np.concatenate([group.frames.photons_total for group in world.batch.groups])
    assert deposit.sums[0].finish()[..., 0].sum() == pytest.approx(total[some].sum(), rel=1e-4)
    assert perplexity.shape == (len(some),)


def test_a_turn_is_by_the_length_of_its_vector() -> None:
    q = random_uniform(5, 1)
    np.testing.assert_allclose(
        angular_distance_deg(turned(q, np.full((5, 3), 0.01)), q), np.degrees(0.01 * 3**0.5), rtol=1e-4
    )


def test_rounding_of_scores_does_not_choose_among_poses(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end of a climb all poses are as good as each other, up to rounding."""
    world = make_world(10_000.0)
    frames, rng = np.arange(len(world.poses)), np.random.default_rng(8)

    def climb() -> NDArray[np.float64]:
        refined = refine_poses(
            world.likelihood, world.expander, world.batch, frames, world.which, world.nearest,
            covering_bound_deg(LEVEL), n_steps=6,
        )  # fmt: skip
        return refined.quaternions

    def rounded(*given: Any) -> NDArray[np.float64]:
        scores = local_scores(*given)
        return scores * (1 + 1e-7 * rng.normal(size=scores.shape))

    plain = climb()
    monkeypatch.setattr(refinement, "local_scores", rounded)
    assert angular_distance_deg(plain, climb()).max() < 0.002
