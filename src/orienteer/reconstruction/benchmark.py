"""Measure how long an iteration takes: expand, score, responsibilities, merge, insert, fluence and compress.

The loop here is the plain one, without halves, stages or annealing: every frame is compared with every pose.
It is timed with two kinds of posteriors: "flat", as in the first iterations, with every frame spread over two
thirds of all poses, and "sharp", as in the last ones, with one or two poses for each frame.
"""

import time
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import (
    Array,
    DeviceName,
    array_namespace,
    choose_device,
    namespace_of_device,
    to_numpy,
)
from orienteer.compute.progress import steps
from orienteer.likelihood.base import Likelihood
from orienteer.likelihood.fluence import normalise_fluence, update_fluence
from orienteer.likelihood.frames import FrameBatch
from orienteer.likelihood.gaussian import Gaussian
from orienteer.likelihood.pixel_model import PixelModel
from orienteer.likelihood.poisson import Poisson
from orienteer.likelihood.product import product_of
from orienteer.orientation.grids import make_grid
from orienteer.orientation.quaternion import random_uniform, to_matrix
from orienteer.posterior.scores import ScoreStore
from orienteer.posterior.tempering import even_sample, inverse_temperature_for_perplexity
from orienteer.reconstruction.frames.batch import Batch, Group
from orienteer.reconstruction.model.relative_intensity import (
    both_friedel,
    corrected,
    prior_photons,
    random_start,
)
from orienteer.reconstruction.orienting.deposit import Deposit
from orienteer.reconstruction.orienting.expander import Expander
from orienteer.reconstruction.orienting.expectation import expect, score_tile
from orienteer.reconstruction.orienting.maximisation import merge
from orienteer.reconstruction.orienting.rows import Poses, RowSpace
from orienteer.reconstruction.plan import Plan, make_plan
from orienteer.reconstruction.stopwatch import Stopwatch, part
from orienteer.slicing.patches import PointPatches
from orienteer.slicing.sums import make_sums
from orienteer.slicing.trilinear import slice_volume
from orienteer.source.patterns import Patterns

Kind = Literal["poisson", "gaussian"]
# Flat posteriors spread a frame over this share of all poses; sharp ones have this perplexity.
_FLAT_SHARE, _SHARP_PERPLEXITY = 2 / 3, 1.5
_SAMPLE = 64
_VOXELS_PER_SPECKLE = 4.0


@dataclass(eq=False)
class Problem:
    """Frames, pixels and poses of a benchmark, ready on the device.

    points : the pixel list in voxels; pixel_weights : (P,) float32 photons of the radial mean.
    patterns : the frames over the pixel list, the scored pixels first.
    level : divisions of the 600-cell.
    """

    points: NDArray[np.float32]
    pixel_weights: NDArray[np.float32]
    n_scored: int
    patterns: Patterns
    level: int
    device: DeviceName = "cpu"
    kind: Kind = "poisson"
    estimates_fluence: bool = True
    kept_mass: float = 0.999
    plan: Plan = field(init=False)

    def __post_init__(self) -> None:
        self.device = choose_device(self.device)
        xp: Any = namespace_of_device(self.device)
        D, P = len(self.patterns), len(self.points)
        grid = make_grid("600-cell", self.level)
        self.edge_voxels = 2 * int(np.ceil(np.linalg.norm(self.points, axis=1).max())) + 3
        whole = FrameBatch.prepare(self.patterns, np.arange(P), self.n_scored, "cpu", "sparse")
        assert whole.photons is not None
        self.lit_pixels = len(whole.photons.pixel) / D
        self.plan = make_plan(
            self.device, D, P, len(grid), self.edge_voxels, self.lit_pixels / P,
            float(whole.photons.count.max()), True,
            largest_square=float(whole.squares.max()) if self.kind == "poisson" else np.inf,
        )  # fmt: skip
        self._points = PointPatches.of(self.points, self.device)
        self._weights = xp.asarray(self.pixel_weights)
        matrices = np.ascontiguousarray(np.swapaxes(to_matrix(grid.quaternions), 1, 2).astype(np.float32))
        log_weights = xp.asarray(grid.log_weights.astype(np.float32))
        self.rows = RowSpace(
            Poses(xp.asarray(matrices), log_weights), 1, log_weights, tile_rows=self.plan.tile_rows
        )
        pixel_model = PixelModel(self._weights, self._weights, self.n_scored)
        self.likelihood: Likelihood = (
            Poisson(pixel_model)
            if self.kind == "poisson"
            else Gaussian(pixel_model, float(np.sqrt(np.mean(self.pixel_weights**2))))
        )
        self.fluence = np.ones(D)
        n_batches = -(-D // self.plan.batch_frames)
        self._prepared = [self._prepare(chunk) for chunk in np.array_split(np.arange(D), n_batches)]
        self._sample = self._prepare(even_sample(D, _SAMPLE))

    def _prepare(self, places: NDArray[np.int64]) -> tuple[NDArray[np.int64], FrameBatch, Any]:
        frames = FrameBatch.prepare(
            self.patterns[places], np.arange(len(self.points)), self.n_scored, self.device, self.plan.layout
        )
        return places, frames, product_of(frames, self.plan.precision)  # type: ignore[arg-type]

    def _batch(self, prepared: tuple[NDArray[np.int64], FrameBatch, Any]) -> Batch:
        places, frames, product = prepared
        group = Group(slice(0, len(places)), frames, product, 1.0)
        xp: Any = namespace_of_device(self.device)
        return Batch(places, (group,), xp.asarray(self.fluence[places]))

    def inverse_temperature(self, model: Array, perplexity: float) -> float:
        """The inverse temperature at which frames have this perplexity."""
        batch, expander = self._batch(self._sample), Expander(model[None], self._points)
        tiles = [
            score_tile(self.likelihood, expander.slices(self.rows, tile, batch.by_pixel), batch)
            for tile in self.rows.tiles()
        ]
        scores = array_namespace(model).concatenate(tiles)
        return inverse_temperature_for_perplexity(scores, self.rows.log_prior, perplexity, limit=1e4)

    def iterate(self, model: Array, beta: float) -> tuple[Array, float]:
        """The model (n, n, n) after one iteration, and the mean (geometric) perplexity of the frames."""
        xp = array_namespace(model)
        expander = Expander(model[None], self._points)
        sums = [make_sums(self.edge_voxels, self.device)]
        deposit = Deposit(sums, None, xp.zeros(len(self.rows), dtype=xp.float64), model[None])
        expected = np.zeros(len(self.patterns))
        log_perplexity = 0.0
        for prepared in self._prepared:
            batch = self._batch(prepared)
            with part("posterior"):
                store = ScoreStore(len(self.rows), len(batch), self.device, self.kept_mass)
            posterior = expect(self.likelihood, expander, self.rows, batch, xp.float32(beta), store)
            photons = merge(self.likelihood, expander, self.rows, batch, store, deposit, self._weights)
            expected[batch.places] = to_numpy(photons)
            log_perplexity += float(posterior.entropy.sum())
        with part("compress"):
            prior = prior_photons(np.exp(log_perplexity / len(self.patterns)))
            new = xp.maximum(corrected(model, both_friedel(sums[0].finish()), prior), 0)
        with part("fluence"):
            if self.estimates_fluence:
                photons = np.concatenate([to_numpy(frames.scored_photons) for _, frames, _ in self._prepared])
                self.fluence, mean = normalise_fluence(
                    update_fluence(photons, expected), np.ones(len(photons))
                )
                new *= xp.float32(mean)
        return new, float(np.exp(log_perplexity / len(self.patterns)))


def time_state(problem: Problem, model: Array, beta: float, repeats: int, name: str = "") -> dict[str, Any]:
    """Time iterations that all begin with the same model and inverse temperature.

    Returns seconds (the median), processor_seconds (summed over all threads; CPU only), and their parts.
    """
    on_gpu = problem.device == "cuda"
    first_fluence = problem.fluence
    walls, processor, parts = [], [], []
    found = 0.0
    for repeat in steps(range(repeats + 1), f"Iterations {name}"):
        problem.fluence = first_fluence
        with Stopwatch(on_gpu) as watch:
            start, user = watch.now(), time.process_time()
            _, found = problem.iterate(model, beta)
            watch.note("whole", start)
        user = time.process_time() - user
        if repeat:  # the first one compiles
            seconds = watch.seconds()
            walls.append(seconds.pop("whole"))
            processor.append(user)
            parts.append(seconds if on_gpu else watch.processor_seconds())
    problem.fluence = first_fluence
    names = [name for name in parts[0] if name != "whole"]
    result: dict[str, Any] = {
        "seconds": float(np.median(walls)),
        "breakdown": {name: float(np.median([p[name] for p in parts])) for name in names},
        "inverse_temperature": beta,
        "perplexity": found,
        "each": walls,
    }
    if not on_gpu:
        result["processor_seconds"] = float(np.median(processor))
        result["each_processor"] = processor
    return result


def time_iterations(
    *,
    frames: int = 10_000,
    pixels: int = 4096,
    rotations_n: int = 12,
    likelihood: Kind = "poisson",
    device: DeviceName = "auto",
    repeats: int = 10,
    seed: int = 0,
    photons: float = 1000.0,
) -> dict[str, Any]:
    """Time whole iterations on simulated frames.

    ``seconds`` and ``breakdown`` are for flat posteriors, which cost most; "flat" and "sharp" hold both.
    ``ceiling_seconds`` is the time of the two matrix products alone, over all pixels, at the rate of a plain
    matrix product of the same precision, measured on the same device; ``share_of_ceiling`` is that time over
    ``seconds``.  ``device_memory_GiB`` is the memory in use on a GPU after the last iteration, with all that
    is kept for reuse; None on the CPU.
    """
    problem, truth, start = made_up(frames, pixels, rotations_n, likelihood, device, seed, photons)
    K = len(problem.rows)
    flat_beta = problem.inverse_temperature(start, _FLAT_SHARE * K)
    flat = time_state(problem, start, flat_beta, repeats, "flat")
    sharp_beta = problem.inverse_temperature(truth, _SHARP_PERPLEXITY)
    sharp = time_state(problem, truth, sharp_beta, repeats, "sharp")
    memory_GiB = _used_GiB(problem.device)
    rate = matrix_product_rate(problem.device, problem.plan.precision)
    ceiling = 4.0 * frames * K * pixels / rate
    result: dict[str, Any] = {
        "device": problem.device,
        "frames": frames,
        "pixels": pixels,
        "lit_pixels_per_frame": problem.lit_pixels,
        "rotations": K,
        "rotations_n": rotations_n,
        "likelihood": likelihood,
        "layout": problem.plan.layout,
        "precision": problem.plan.precision,
        "edge_voxels": problem.edge_voxels,
        "device_memory_GiB": memory_GiB,
        "plan_GiB": problem.plan.memory_GiB,
        "repeats": repeats,
        "seconds": flat["seconds"],
        "seconds_sharp": sharp["seconds"],
        "ceiling_seconds": ceiling,
        "ceiling_teraflops": rate / 1e12,
        "share_of_ceiling": ceiling / flat["seconds"],
        "share_of_ceiling_sharp": ceiling / sharp["seconds"],
        "breakdown": flat["breakdown"],
        "breakdown_sharp": sharp["breakdown"],
        "flat": flat,
        "sharp": sharp,
    }
    return result


def _used_GiB(device: DeviceName) -> float | None:
    if device != "cuda":
        return None
    cupy: Any = namespace_of_device(device)
    free, total = cupy.cuda.runtime.memGetInfo()
    return float(total - free) / 2**30


def made_up(
    frames: int, pixels: int, level: int, kind: Kind, device: DeviceName, seed: int, photons: float
) -> tuple[Problem, Array, Array]:
    """A problem with simulated frames of a curved square detector, the true model, and a random start."""
    side = int(np.ceil(np.sqrt(pixels)))
    axis = np.arange(side) - (side - 1) / 2
    x, y = (a.ravel()[:pixels] for a in np.meshgrid(axis, axis, indexing="ij"))
    square = x**2 + y**2
    points = np.stack([x, y, -square / (4.0 * side)], axis=1).astype(np.float32)
    weights = 1 / (1 + square / (side / 6) ** 2) ** 1.5
    weights = (weights * photons / weights.sum()).astype(np.float32)
    n = 2 * int(np.ceil(np.linalg.norm(points, axis=1).max())) + 3
    truth = random_start(n, seed, _VOXELS_PER_SPECKLE, contrast=1.0)
    truth /= truth.mean()
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(3,)))
    counts = np.empty((frames, pixels), dtype=np.uint16)
    poses = to_matrix(random_uniform(frames, rng))
    for first in range(0, frames, 1000):
        matrices = np.swapaxes(poses[first : first + 1000], 1, 2).astype(np.float32)
        counts[first : first + 1000] = rng.poisson(slice_volume(truth, points, matrices) * weights)
    problem = Problem(points, weights, pixels, Patterns(counts), level, device, kind)
    xp: Any = namespace_of_device(problem.device)
    start = random_start(n, seed + 1, _VOXELS_PER_SPECKLE)
    return problem, xp.asarray(truth), xp.asarray(start)


def matrix_product_rate(device: DeviceName, precision: str, size: int = 0) -> float:
    """Floating-point operations per second of a plain square matrix product; the best of several.

    The rate is that of one product in the number type that the precision multiplies.
    """
    xp: Any = namespace_of_device(device)
    on_gpu = choose_device(device) == "cuda"
    size = size or (8192 if on_gpu else 2048)
    dtype = np.float16 if on_gpu and precision in ("half", "split") else np.float32
    a = xp.ones((size, size), dtype=dtype)
    best = np.inf
    for _ in range(6):
        watch = Stopwatch(on_gpu)
        start = watch.now()
        a @ a
        watch.note("product", start)
        best = min(best, watch.seconds()["product"])
    return 2.0 * size**3 / best
