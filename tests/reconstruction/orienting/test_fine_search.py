"""Coarse-to-fine search: with everything kept it is the exhaustive search, with little kept nearly that."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from orienteer.compute.arrays import namespace_of_device, to_device, to_numpy
from orienteer.compute.ranks.comm import SERIAL, Serial
from orienteer.likelihood.base import Likelihood
from orienteer.likelihood.fluence import fluence_groups
from orienteer.likelihood.frames import FrameBatch
from orienteer.likelihood.gaussian import Gaussian
from orienteer.likelihood.negative_binomial import NegativeBinomial
from orienteer.likelihood.pixel_model import PixelModel
from orienteer.likelihood.poisson import Poisson
from orienteer.likelihood.product import product_of
from orienteer.orientation.grids import make_grid
from orienteer.orientation.pose_grid import PoseGrid
from orienteer.orientation.quaternion import compose, from_axis_angle, random_uniform, to_matrix
from orienteer.posterior.scores import ScoreStore
from orienteer.posterior.tempering import inverse_temperatures
from orienteer.reconstruction.frames.batch import Batch, Group
from orienteer.reconstruction.orienting.deposit import Deposit
from orienteer.reconstruction.orienting.expander import Expander
from orienteer.reconstruction.orienting.expectation import expect
from orienteer.reconstruction.orienting.fine_search import FineSearch
from orienteer.reconstruction.orienting.fine_temperature import fine_inverse_temperature
from orienteer.reconstruction.orienting.listed_rows import owners_of
from orienteer.reconstruction.orienting.maximisation import merge
from orienteer.reconstruction.orienting.rows import Poses, RowSpace
from orienteer.slicing.patches import PointPatches
from orienteer.slicing.sums import make_sums
from orienteer.slicing.trilinear import slice_volume
from orienteer.source.patterns import Patterns

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
EDGE, N_PIXELS, N_SCORED, N_FRAMES = 21, 400, 350, 40


@dataclass
class World:
    """Frames of two models and of one junk class, ready to be searched for on a coarse grid."""

    grid: PoseGrid
    rows: RowSpace
    expander: Expander
    likelihood: Likelihood
    batch: Batch
    pixel_weights: Any
    true_poses: NDArray[np.float64]

    def deposit(self, rows: int) -> Deposit:
        device = self.expander.models
        xp = namespace_of_device("cpu" if isinstance(device, np.ndarray) else "cuda")
        kind: Any = "cpu" if xp is np else "cuda"
        junk = None if self.expander.junk is None else xp.zeros((len(self.expander.junk), N_PIXELS, 2))
        sums = [make_sums(EDGE, kind) for _ in range(self.rows.n_models)]
        return Deposit(sums, junk, xp.zeros(rows))


def smooth_models(n_models: int, seed: int) -> NDArray[np.float32]:
    rng = np.random.default_rng(seed)
    from scipy.ndimage import gaussian_filter

    models = [gaussian_filter(rng.normal(size=(EDGE,) * 3), 2.0) for _ in range(n_models)]
    models = [(m + m[::-1, ::-1, ::-1]) / 2 for m in models]
    return np.stack([np.exp(0.8 * m / m.std()) for m in models]).astype(np.float32)


def make_world(
    kind: str = "poisson", device: Any = "cpu", layout: Any = "sparse", photons: float = 400.0,
    n_models: int = 2, n_junk: int = 1, background: float = 0.0, masked: bool = False, spread: float = 0.5,
    level: int = 1, symmetry: str = "C1", tile_rows: int = 37, weighted: bool = False,
) -> World:  # fmt: skip
    xp = namespace_of_device(device)
    rng = np.random.default_rng(5)
    radius = 9 * np.sqrt(rng.random(N_PIXELS))
    angle = rng.uniform(0, 2 * np.pi, N_PIXELS)
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle), 0.03 * radius**2], axis=1).astype(
        np.float32
    )
    models, junk = smooth_models(n_models, 1), np.exp(0.3 * rng.normal(size=(n_junk, N_PIXELS)))
    weights = photons / N_PIXELS * rng.uniform(0.7, 1.3, N_PIXELS)
    fluence = np.exp(spread * rng.normal(size=N_FRAMES))
    poses, model = random_uniform(N_FRAMES, 3), rng.integers(0, n_models, N_FRAMES)
    slices = np.stack(
        [
            slice_volume(models[m], points, to_matrix(q).T[None].astype(np.float32))[0]
            for q, m in zip(poses, model, strict=True)
        ]
    )
    if n_junk:
        slices[-5:] = junk[0]
    level_of_background = np.full(N_PIXELS, background * photons / N_PIXELS)
    counts = rng.poisson(fluence[:, None] * weights * slices + level_of_background)
    counts[7] = 0
    frame_mask = np.where(rng.random(counts.shape) < 0.1, 2, 0).astype(np.uint8) if masked else None
    order, bounds = np.arange(N_FRAMES), np.array([0, N_FRAMES])
    if spread:
        found = fluence_groups(fluence, 1.3)
        order, bounds = found.order, found.bounds
    groups = []
    for first, last in pairwise(bounds):
        members = order[first:last]
        columns = {} if frame_mask is None else {"frame_mask": frame_mask[members]}
        patterns = Patterns(counts[members].astype(np.uint16), columns=columns)
        frames = FrameBatch.prepare(patterns, np.arange(N_PIXELS), N_SCORED, device, layout)
        phi = float(np.exp(np.log(fluence[members]).mean()))
        product = product_of(frames, "single")
        groups.append(Group(slice(int(first), int(last)), frames, product, phi, is_even=not spread))
    pixel_weights = xp.asarray(weights.astype(np.float32))
    pixels = PixelModel(
        pixel_weights, pixel_weights, N_SCORED,
        xp.asarray(level_of_background.astype(np.float32)) if background else None,
    )  # fmt: skip
    likelihood: Likelihood = {
        "poisson": lambda: Poisson(pixels),
        "negative-binomial": lambda: NegativeBinomial(pixels, xp.full(N_PIXELS, 0.05, dtype=np.float32)),
        "gaussian": lambda: Gaussian(pixels, 2.0),
    }[kind]()
    grid = make_grid("600-cell", level, symmetry)
    coarse = row_space(xp, grid, n_models, n_junk, tile_rows)
    expander = Expander(
        xp.asarray(models),
        PointPatches.of(points, device),
        xp.asarray(junk.astype(np.float32)) if n_junk else None,
    )
    frame_weight = xp.asarray(rng.uniform(0.5, 1, N_FRAMES).astype(np.float32)) if weighted else None
    batch = Batch(order, tuple(groups), xp.asarray(fluence[order]), frame_weight)
    return World(grid, coarse, expander, likelihood, batch, pixel_weights, poses[order])


def row_space(xp: Any, grid: PoseGrid, n_models: int, n_junk: int, tile_rows: int) -> RowSpace:
    matrices = np.swapaxes(to_matrix(grid.quaternions), 1, 2).astype(np.float32)
    poses = Poses(xp.asarray(np.ascontiguousarray(matrices)), xp.asarray(grid.log_weights.astype(np.float32)))
    share = np.arange(1, n_models + n_junk + 1) / np.arange(1, n_models + n_junk + 1).sum()
    parts = [grid.log_weights + np.log(s) for s in share[:n_models]] + [np.log(share[n_models:])]
    log_prior = xp.asarray(np.concatenate(parts).astype(np.float32))
    return RowSpace(poses, n_models, log_prior, n_junk, tile_rows)


def exhaustive(world: World, search: FineSearch, beta: float, kept_mass: float) -> tuple[Any, Any, Deposit]:
    """The same on all rows of the fine grid, as one grid is searched."""
    rows = search.rows
    store = ScoreStore(
        len(rows),
        len(world.batch),
        "cpu" if isinstance(world.pixel_weights, np.ndarray) else "cuda",
        kept_mass,
    )
    posterior = expect(world.likelihood, world.expander, rows, world.batch, beta, store)
    deposit = world.deposit(len(rows))
    expected = merge(world.likelihood, world.expander, rows, world.batch, store, deposit, world.pixel_weights)
    return posterior, expected, deposit


CASES = [
    {"kind": "poisson"},
    {"kind": "poisson", "layout": "dense", "spread": 0.0},
    {"kind": "negative-binomial"},
    {"kind": "negative-binomial", "layout": "dense", "masked": True},
    {"kind": "negative-binomial", "masked": True, "background": 1.0},
    {"kind": "poisson", "background": 0.5, "n_models": 1, "n_junk": 0, "spread": 0.0},
    {"kind": "gaussian", "n_models": 1, "n_junk": 0},
    {"kind": "gaussian", "masked": True, "layout": "dense"},
    {"kind": "poisson", "symmetry": "D2", "n_junk": 3, "weighted": True},
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(f"{v}" for v in case.values()))
def test_with_all_mass_kept_it_is_the_exhaustive_search(case: dict[str, Any], device: Any) -> None:
    world = make_world(device=device, **case)
    search = FineSearch(world.rows, world.grid, kept_mass=1.0)
    beta = 0.3
    wanted, wanted_expected, wanted_deposit = exhaustive(world, search, beta, 1.0)
    deposit = world.deposit(len(world.rows))
    found, expected = search.step(
        world.likelihood, world.expander, world.batch, beta, beta, deposit, world.pixel_weights
    )
    loose = 1 if device == "cpu" else 300  # the exhaustive scores are kept in float16 on the GPU
    np.testing.assert_allclose(to_numpy(found.log_evidence), to_numpy(wanted.log_evidence), atol=2e-3)
    np.testing.assert_array_equal(to_numpy(found.best_row), to_numpy(wanted.best_row))
    np.testing.assert_allclose(to_numpy(found.best_score), to_numpy(wanted.best_score), atol=2e-3)
    np.testing.assert_allclose(to_numpy(found.entropy), to_numpy(wanted.entropy), atol=2e-3)
    np.testing.assert_allclose(to_numpy(expected), to_numpy(wanted_expected), rtol=1e-4 * loose)
    for ours, theirs in zip(deposit.sums, wanted_deposit.sums, strict=True):
        sums, reference = to_numpy(ours.finish()), to_numpy(theirs.finish())
        np.testing.assert_allclose(sums, reference, atol=2e-4 * loose**0.5 * reference.max())
        assert reference.max() > 1
    if wanted_deposit.junk is not None:
        np.testing.assert_allclose(
            to_numpy(deposit.junk), to_numpy(wanted_deposit.junk), rtol=1e-3 * loose, atol=1e-3
        )
    mass, fine = to_numpy(deposit.row_mass), to_numpy(wanted_deposit.row_mass)
    K, L, M = len(world.grid), len(search.poses), world.rows.n_models
    by_parent = np.add.reduceat(fine[: M * L].reshape(M, L), world.grid.child_start[:-1], axis=1)
    by_parent[:, np.diff(world.grid.child_start) == 0] = 0
    np.testing.assert_allclose(mass[: M * K].reshape(M, K), by_parent, atol=1e-3 * loose)
    np.testing.assert_allclose(mass[M * K :], fine[M * L :], atol=1e-3 * loose)
    assert mass.sum() == pytest.approx(N_FRAMES, rel=1e-5)


@pytest.mark.parametrize(
    ("coarse_beta", "largest_share", "largest_loss"), [(0.25, 0.4, 1e-3), (0.5, 0.1, 2.0)]
)
def test_a_fraction_of_the_fine_rows_gives_nearly_the_whole_posterior(
    coarse_beta: float, largest_share: float, largest_loss: float
) -> None:
    world = make_world(level=3, photons=300.0, n_models=1, n_junk=0, spread=0.0)
    search = FineSearch(world.rows, world.grid, kept_mass=0.999)
    wanted, *_ = exhaustive(world, search, 1.0, 0.999)
    coarse = search.coarse(world.likelihood, world.expander, world.batch, coarse_beta)
    blocks = search.blocks(coarse)
    found = search.posterior(search.score(world.likelihood, world.expander, world.batch, blocks), 1.0)
    lit = np.arange(N_FRAMES) != 7
    loss = (wanted.log_evidence - found.posterior.log_evidence)[lit]
    assert blocks.n_values < largest_share * N_FRAMES * len(search.rows)
    assert -1e-3 < loss.min() <= loss.max() < largest_loss
    assert np.median(loss) < 0.01
    assert np.mean(found.posterior.best_row[lit] == wanted.best_row[lit]) > 0.95


def test_junk_takes_only_what_it_explains_better_than_the_fine_poses() -> None:
    world = make_world(level=1, photons=2000.0)
    search = FineSearch(world.rows, world.grid)
    found, _ = search.step(
        world.likelihood, world.expander, world.batch, 0.05, 1.0, None, world.pixel_weights
    )
    is_junk = to_numpy(found.best_row) >= world.rows.n_models * len(search.poses)
    # The last five frames before sorting by fluence are junk; frame 7 is dark.
    truly = np.isin(world.batch.places, np.arange(N_FRAMES - 5, N_FRAMES))
    lit = world.batch.places != 7
    np.testing.assert_array_equal(is_junk[lit], truly[lit])


def test_a_blank_frame_is_spread_over_all_fine_poses_by_their_weights() -> None:
    world = make_world(level=1, n_models=1, n_junk=0, spread=0.0)
    search = FineSearch(world.rows, world.grid)
    blocks = search.blocks(search.coarse(world.likelihood, world.expander, world.batch, 1.0))
    scored = search.score(world.likelihood, world.expander, world.batch, blocks)
    found = search.posterior(scored, 1.0, 1.0)
    owners = owners_of(blocks)
    blank = owners.frame == 7
    p = np.zeros(len(search.rows))
    p[blocks.row[owners.row[blank]]] = found.probability[blank]
    np.testing.assert_allclose(p, np.exp(search.rows.log_prior), rtol=1e-3)


@pytest.mark.parametrize("spread", [0.0, 0.5])
def test_the_fine_temperature_spreads_frames_as_asked(spread: float) -> None:
    world = make_world(level=1, photons=3000.0, n_models=1, n_junk=0, spread=spread)
    search = FineSearch(world.rows, world.grid, kept_mass=1.0)
    context = world.likelihood, world.expander, world.batch
    blocks = search.blocks(search.coarse(*context, 0.1))
    beta = fine_inverse_temperature(search, *context, blocks, 8.0)
    scored = search.score(*context, blocks)
    own = inverse_temperatures(beta, world.batch.fluence)
    entropy = search.posterior(scored, own).posterior.entropy
    assert 0 < beta < 1
    assert np.exp(np.average(entropy, weights=world.batch.fluence)) == pytest.approx(8.0, rel=5e-3)
    untempered = fine_inverse_temperature(search, *context, blocks, 1.0)
    brighter_than_these = np.array([2.0, 10.0]) * world.batch.fluence.max()
    assert inverse_temperatures(untempered, brighter_than_these).tolist() == [1.0, 1.0]


def test_scores_may_be_held_in_parts() -> None:
    world = make_world("negative-binomial", masked=True, n_junk=2)
    results = []
    for most_scores in (1 << 26, 1000):
        search = FineSearch(world.rows, world.grid)
        search.most_scores = most_scores
        n_parts = len(
            list(search.in_pieces(search.coarse(world.likelihood, world.expander, world.batch, 0.3)))
        )
        deposit = world.deposit(len(world.rows))
        found, expected = search.step(
            world.likelihood, world.expander, world.batch, 0.3, 0.4, deposit, world.pixel_weights
        )
        sums = deposit.sums[0].finish()
        results.append((found.log_evidence, found.best_row, found.entropy, expected, deposit.junk, sums))
    assert n_parts > 5
    for whole, parts in zip(*results, strict=True):
        np.testing.assert_allclose(parts, whole, rtol=1e-4, atol=1e-4)


class _FirstOfNine(Serial):
    """The first of nine ranks that all have to do the same; it sees what they agree on, and how often."""

    size, n_agreed = 9, 0

    def sum(self, x):
        return 9 * x

    def min(self, x):
        self.n_agreed += 1
        return x


def test_parts_are_as_large_as_a_rank_can_hold_unless_any_number_of_them_is_to_have_the_same() -> None:
    world = make_world(n_junk=0)
    search = FineSearch(world.rows, world.grid)
    coarse = search.coarse(world.likelihood, world.expander, world.batch, 0.3)

    def parts(most_scores: int, same_parts: bool, comm: Serial) -> list[list[int]]:
        search.most_scores, search.same_parts, search.comm = most_scores, same_parts, comm
        found = list(search.in_pieces(coarse))
        return [np.flatnonzero(np.diff(part.start)).tolist() for part in found]

    alone = parts(1000, False, SERIAL)
    assert len(alone) > 5
    nine = _FirstOfNine()
    assert parts(1000, False, nine) == alone
    assert nine.n_agreed == len(alone)  # else one rank would be at another part than the others
    assert parts(9000, True, _FirstOfNine()) == alone
    assert [frame for part in alone for frame in part] == list(range(len(world.batch)))


def test_frames_that_are_not_counted_add_nothing_to_the_mass_of_rows() -> None:
    world = make_world(n_junk=2)
    search = FineSearch(world.rows, world.grid, kept_mass=1.0)
    is_even = np.arange(len(world.batch)) % 2 == 0
    masses = []
    for counted in (None, is_even, ~is_even):
        deposit = world.deposit(len(world.rows))
        batch = replace(world.batch, counted=counted)
        search.step(world.likelihood, world.expander, batch, 0.3, 0.3, deposit, world.pixel_weights)
        masses.append(deposit.row_mass)
    assert masses[1].sum() == pytest.approx(is_even.sum())
    np.testing.assert_allclose(masses[1] + masses[2], masses[0], rtol=1e-6, atol=1e-9)


def test_one_thread_and_two_give_the_same_bits() -> None:
    import numba

    world = make_world("negative-binomial", masked=True)
    search = FineSearch(world.rows, world.grid, kept_mass=0.99)
    results = []
    before = numba.get_num_threads()
    for threads in (1, before):
        numba.set_num_threads(threads)
        deposit = world.deposit(len(world.rows))
        found, expected = search.step(
            world.likelihood, world.expander, world.batch, 0.3, 0.4, deposit, world.pixel_weights
        )
        results.append(
            (found.log_evidence, expected, deposit.sums[0].finish(), deposit.row_mass, deposit.junk)
        )
    numba.set_num_threads(before)
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)


def test_matrices_are_those_of_the_fine_poses() -> None:
    world = make_world(level=1, symmetry="C2")
    search = FineSearch(world.rows, world.grid)
    turn = from_axis_angle([0, 0, 1], 180)
    np.testing.assert_allclose(
        to_numpy(to_device(search.poses.matrices, "cpu")),
        np.swapaxes(to_matrix(search.quaternions), 1, 2),
        atol=1e-6,
    )
    # Every fine pose has its equivalent half turn only once.
    together = np.abs(search.quaternions @ compose(search.quaternions, turn).T)
    assert together.max() < 1 - 1e-9
