"""The benchmarks in three minutes: ratios that mean the same on every machine, beside those that were kept.

    python bench/small.py [--parts slicing emc ...] [--keep]

Seconds depend on the machine and on what else it does; so each part is timed in turns with a yardstick, some
plain work of the same kind, by the processor time of one thread, and the ratio of the least of both counts.
What has no time, such as an error or a correlation with the truth, is compared as it is.  ``--keep`` writes
the ratios to bench/small_ratios.json, with which later ones are compared.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

# Threads that wait for each other cost processor time, the more the busier the machine is.
os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")

import numpy as np

from machine import describe_machine

KEPT = Path(__file__).parent / "small_ratios.json"
# Timed ratios of the same code differed by up to 1.26 between runs on a busy machine.
SAME = 1.4


class Ratio(NamedTuple):
    """One line of the table.

    words : what is compared with what.
    less_is_better : whether a smaller value is an improvement.
    same : factor within which two values count as the same.
    """

    words: str
    value: float
    less_is_better: bool = True
    same: float = SAME


def side_by_side(work: Callable[[], Any], yardstick: Callable[[], Any], turns: int = 9) -> float:
    """Least processor time of some work over that of its yardstick, both measured in turns after a first."""
    spent: list[list[float]] = [[], []]
    for turn in range(turns + 1):
        for which, each in enumerate((work, yardstick)):
            begin = time.process_time()
            each()
            if turn:  # the first one compiles
                spent[which].append(time.process_time() - begin)
    return min(spent[0]) / min(spent[1])


def simulation() -> Iterator[tuple[str, Ratio]]:
    """Frames of a structure, over the exact sum over its atoms."""
    from orienteer.detector.beam import Beam
    from orienteer.detector.square import square_detector
    from orienteer.orientation.quaternion import to_matrix
    from orienteer.particle.named_bodies import random_blobs
    from orienteer.simulation.experiment import Experiment
    from orienteer.simulation.settings import SimulateSettings

    beam = Beam(wavelength_A=2.7)
    detector = square_detector(64, distance_m=0.2, edge_resolution_A=12, wavelength_A=2.7)
    structure = random_blobs(150, 1000, seed=1)
    settings = SimulateSettings(frames=200, photons_per_frame=500)
    experiment = Experiment(structure, beam, detector, settings, device="cpu", seed=1)
    truth = experiment.truth(0, 1)
    rotation = to_matrix(truth.orientation[:, 0])[0]
    q = detector.q_inv_A(beam.wavelength_A) @ rotation

    def exact() -> np.ndarray:
        return np.asarray(np.abs(structure.amplitude(q, beam.photon_energy_eV)) ** 2)

    ratio = side_by_side(lambda: [len(batch) for batch in experiment.batches()], exact, 5) / settings.frames
    yield "simulation", Ratio("a simulated frame / the exact sum over 1 000 atoms", ratio)
    scale = detector.correction(beam.polarisation) * experiment.fluence_r_e2
    wanted, fast = exact() * scale, np.asarray(experiment.expected(truth)[0], np.float64)
    error = float(np.linalg.norm(fast - wanted) / np.linalg.norm(wanted))
    yield "simulation error", Ratio("fast against exact intensities, relative", error)


def rotations() -> Iterator[tuple[str, Ratio]]:
    """A grid of rotations, over normalising as many random quaternions in plain NumPy."""
    from orienteer.orientation.six_hundred_cell import six_hundred_cell

    random = np.random.default_rng(1).normal(size=(137_340, 4))
    ratio = side_by_side(
        lambda: six_hundred_cell(14), lambda: random / np.linalg.norm(random, axis=1, keepdims=True)
    )
    yield "rotations", Ratio("137 340 rotations with weights / normalising as many at random", ratio)


def slicing() -> Iterator[tuple[str, Ratio]]:
    """Slices and their adjoint, over plain loops."""
    from slicing import make_matrices, make_points, variants

    points, matrices = make_points(61), make_matrices(400)
    n = 2 * int(np.ceil(np.linalg.norm(points, axis=1).max())) + 3
    volume = np.random.default_rng(1).random((n, n, n), dtype=np.float32)
    values = np.ones((len(matrices), len(points)), np.float32)
    work = {(what, how): each for what, how, each in variants("cpu", volume, points, matrices, values)}
    for what in ("slice", "insert"):
        ratio = side_by_side(work[what, "by row"], work[what, "plain loops"])
        yield what, Ratio(f"{what} a volume / plain loops", ratio)


def products() -> Iterator[tuple[str, Ratio]]:
    """Products over lit pixels only, over the matrix products of all pixels."""
    from orienteer.likelihood.frames import FrameBatch
    from orienteer.likelihood.product import SparseProduct
    from orienteer.source.patterns import Patterns
    from product import PHOTONS, PIXELS, weak_frames

    frames, draw = weak_frames(1000, PHOTONS), np.random.default_rng(2)
    product = SparseProduct(FrameBatch.prepare(Patterns(frames), np.arange(PIXELS), PIXELS, "cpu", "sparse"))
    operand = draw.normal(size=(PIXELS, 256)).astype(np.float32)
    weights = draw.random((256, len(frames))).astype(np.float32)
    dense = frames.astype(np.float32)
    rows = np.ascontiguousarray(operand.T)
    ratio = side_by_side(lambda: product.scores(operand), lambda: rows @ dense.T)
    yield "scores", Ratio("scores over lit pixels / matrix product over all", ratio)
    ratio = side_by_side(lambda: product.merge(weights), lambda: weights @ dense)
    yield "merge", Ratio("merge over lit pixels / matrix product over all", ratio)


def emc() -> Iterator[tuple[str, Ratio]]:
    """Whole iterations, over the two matrix products that no EMC on all pixels can do without."""
    from orienteer.reconstruction.benchmark import made_up

    n_frames, n_pixels = 300, 1024
    for kind in ("poisson", "gaussian"):
        problem, _, start = made_up(n_frames, n_pixels, 4, kind, "cpu", 1, 1000.0)  # type: ignore[arg-type]
        beta = problem.inverse_temperature(start, 100.0)
        first = problem.fluence
        slices = np.ones((len(problem.rows), n_pixels), np.float32)
        frames = np.ones((n_frames, n_pixels), np.float32)
        weights = np.ones((len(problem.rows), n_frames), np.float32)

        def iterate(
            problem: Any = problem, start: Any = start, beta: float = beta, first: Any = first
        ) -> None:
            problem.fluence = first
            problem.iterate(start, beta)

        def multiply(slices: Any = slices, frames: Any = frames, weights: Any = weights) -> None:
            slices @ frames.T
            weights @ frames

        yield (
            f"iteration, {kind}",
            Ratio(f"{kind} iteration / its matrix products", side_by_side(iterate, multiply)),
        )


def phasing() -> Iterator[tuple[str, Ratio]]:
    """Iterations of many starts, over their FFTs alone."""
    from orienteer.particle.named_bodies import virus
    from orienteer.phase.course import Course
    from orienteer.phase.data import phasing_data
    from orienteer.phase.half_grid import density_of, transform_of
    from orienteer.phase.schedule import parse_schedule
    from orienteer.phase.settings import PhaseSettings
    from phase import make_problem

    data = phasing_data(make_problem(virus(300), 300, 40).intensity, device="cpu")
    course = Course.of(data, PhaseSettings(starts=4))
    n_iterations = 2 * course.every
    state = course.start(range(4), np.full(4, course.first_volume / 2), 0)
    schedule = parse_schedule(f"{n_iterations}*raar(0.87)")

    def iterate() -> None:
        course.run(state, schedule, lambda done: None)

    def transform() -> None:
        for _ in range(n_iterations):
            density_of(transform_of(state.density))

    yield "phasing", Ratio("phasing / its FFTs alone", side_by_side(iterate, transform, 6))


def comparing() -> Iterator[tuple[str, Ratio]]:
    """A Fourier shell correlation, over its two FFTs."""
    from scipy.fft import rfftn

    from orienteer.compare.fsc import fourier_shell_correlation

    first, second = np.random.default_rng(1).normal(size=(2, 96, 96, 96)).astype(np.float32)
    ratio = side_by_side(
        lambda: fourier_shell_correlation(first, second), lambda: (rfftn(first), rfftn(second))
    )
    yield "fsc", Ratio("Fourier shell correlation / two FFTs", ratio)


def merging() -> Iterator[tuple[str, Ratio]]:
    """Normal equations of M-TIP: sums of frames over slices put back, a product over its two FFTs."""
    from scipy.fft import irfftn, rfftn

    from merging import VOXEL_A, make_points
    from orienteer.mtip.normal_equations import NormalEquations
    from orienteer.mtip.toeplitz import ToeplitzProduct
    from orienteer.orientation.quaternion import random_uniform, to_matrix
    from orienteer.slicing.sums import make_sums
    from orienteer.slicing.trilinear import insert_slices

    n, points = 41, make_points(32)
    matrices = np.ascontiguousarray(np.swapaxes(to_matrix(random_uniform(50, 1)), 1, 2))
    frames = np.random.default_rng(1).random((50, len(points)), dtype=np.float32)
    empty, sums = NormalEquations.empty(n, VOXEL_A, "cpu"), make_sums(n, "cpu")
    equations = empty.with_frames(frames, points, matrices, tolerance=1e-4)
    places = (n * VOXEL_A * points).astype(np.float32)
    ones = np.ones(50, np.float32), np.ones(len(points), np.float32)
    ratio = side_by_side(
        lambda: empty.with_frames(frames, points, matrices, tolerance=1e-4),
        lambda: insert_slices(sums, places, matrices.astype(np.float32), frames, *ones),
    )
    yield "normal equations", Ratio("normal equations of frames / trilinear merge of them", ratio, same=1.5)
    product = ToeplitzProduct(equations.kernel)
    volume = np.zeros((n, n, n))
    padded = np.zeros((2 * n, 2 * n, 2 * n))
    ratio = side_by_side(lambda: product(volume), lambda: irfftn(rfftn(padded)))
    yield "toeplitz", Ratio("product with the normal matrix / two FFTs of twice the size", ratio)


def hits() -> Iterator[tuple[str, Ratio]]:
    """Calibration and hit finding, over one pass through the same numbers."""
    from orienteer.calibration.calibration import Calibration
    from orienteer.calibration.constants import Constants
    from orienteer.calibration.settings import CalibrationSettings
    from orienteer.hits.finding import HitFinder
    from orienteer.hits.settings import HitSettings
    from orienteer.source.patterns import Patterns

    n_pixels, draw = 128 * 128, np.random.default_rng(1)
    known = Constants(np.full((1, n_pixels), 100, np.float32), np.full((1, n_pixels), 30, np.float32))
    raw = (100 + 30 * draw.poisson(0.06, (512, n_pixels))).astype(np.uint16)
    calibrate = Calibration(CalibrationSettings(), n_pixels, constants=known)
    shots = Patterns(raw)
    photons, finder = calibrate(shots), HitFinder(HitSettings(), n_pixels)
    room = np.empty(raw.shape, np.float32)  # made once: new memory costs more or less, as the system likes

    def copy_and_sum() -> None:
        np.copyto(room, raw)
        room.sum(axis=1)

    ratio = side_by_side(lambda: calibrate(shots), copy_and_sum)
    yield "calibration", Ratio("calibration / a copy and a sum of the same frames", ratio)
    ratio = side_by_side(lambda: finder.look(photons), copy_and_sum)
    yield "hit finding", Ratio("hit finding / a copy and a sum of the same frames", ratio)


def files() -> Iterator[tuple[str, Ratio]]:
    """Our own files, over the same bytes through a plain one."""
    import tempfile

    from orienteer.source.opening import open as open_source
    from orienteer.source.opening import writer_for

    frames = np.random.default_rng(1).poisson(0.1, (1000, 64, 64)).astype(np.uint8)
    source = open_source(frames)
    with tempfile.TemporaryDirectory() as folder:
        path, plain = Path(folder) / "frames.h5", Path(folder) / "frames.npy"

        def write() -> None:
            path.unlink(missing_ok=True)
            with writer_for(path, like=source) as writer:
                for patterns in source.batches():
                    writer.append(patterns)

        ratio = side_by_side(write, lambda: np.save(plain, frames))
        yield "writing", Ratio("frames into our HDF5 / into a plain file", ratio, same=2.0)
        ratio = side_by_side(lambda: open_source(path).read(), lambda: np.load(plain).astype(np.float32))
        yield "reading", Ratio("frames from our HDF5 / from a plain file", ratio, same=2.0)


def blind() -> Iterator[tuple[str, Ratio]]:
    """A small reconstruction from a random start: how well it is oriented, and in how many iterations."""
    from blind import BEAM, Object, judge
    from orienteer.detector.square import square_detector
    from orienteer.particle.named_bodies import two_domains
    from orienteer.reconstruction.emc import Emc
    from orienteer.reconstruction.settings import EmcSettings
    from orienteer.simulation.experiment import Experiment
    from orienteer.simulation.settings import SimulateSettings

    thing = Object(two_domains(150), 150, edge_A=37.5, pixels=24)
    detector = square_detector(24, distance_m=0.2, edge_resolution_A=37.5, wavelength_A=BEAM.wavelength_A)
    settings = SimulateSettings(frames=500, photons_per_frame=1000, seed=1)
    experiment = Experiment(thing.particle, BEAM, detector, settings, device="cpu")
    found = Emc(experiment, EmcSettings(), seed=1, device="cpu")
    begin = time.process_time()
    while not found.finished:
        found.step()
    spent = time.process_time() - begin
    volume = found.volumes()[0]
    verdict = judge(experiment, thing, np.asarray(volume.values), volume.voxel_size[0])
    print(f"   blind: {found.iteration} iterations, {spent:.0f} s of processors", file=sys.stderr)
    yield "blind", Ratio("blind run: correlation with the truth", verdict["correlation"], False, 1.03)
    yield "iterations", Ratio("blind run: iterations", float(found.iteration), same=1.2)


PARTS = {
    part.__name__: part
    for part in (
        simulation, rotations, slicing, products, emc, phasing, comparing, merging, hits, files, blind,
    )
}  # fmt: skip


def verdict_of(now: Ratio, kept: float | None) -> str:
    """In words, how a ratio compares with the kept one.

    >>> verdict_of(Ratio("time", 2.0), 1.0), verdict_of(Ratio("time", 1.1), 1.0)
    ('WORSE: 2 times', 'as kept')
    >>> verdict_of(Ratio("correlation", 2.0, less_is_better=False), 1.0)
    'better: 2 times'
    """
    if kept is None:
        return "not kept yet"
    change = now.value / kept
    if 1 / now.same <= change <= now.same:
        return "as kept"
    is_better = (change < 1) == now.less_is_better
    return f"{'better' if is_better else 'WORSE'}: {change:.3g} times"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", choices=sorted(PARTS), default=list(PARTS))
    parser.add_argument("--keep", action="store_true", help=f"keep the ratios in bench/{KEPT.name}")
    options = parser.parse_args()
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {"ratios": {}}
    began, found = time.perf_counter(), {}
    print(f"{'ratio':58s} {'kept':>9s} {'now':>9s}")
    for part in options.parts:
        for name, ratio in PARTS[part]():
            found[name] = ratio
            before = kept["ratios"].get(name)
            told = "-" if before is None else f"{before:.4g}"
            words = verdict_of(ratio, before)
            print(f"{ratio.words:58s} {told:>9s} {ratio.value:9.4g}   {words}", flush=True)
    worse = [name for name, ratio in found.items() if "WORSE" in verdict_of(ratio, kept["ratios"].get(name))]
    seconds, processor_seconds = time.perf_counter() - began, time.process_time()
    told = f"{len(worse)} of {len(found)} ratios are worse than kept: {', '.join(worse)}."
    print(f"\n{told if worse else 'Nothing is worse than kept.'}", end=" ")
    print(f"It took {seconds:.0f} s, {processor_seconds:.0f} s of it on the processor.")
    if options.keep:
        ratios = kept["ratios"] | {name: float(f"{ratio.value:.4g}") for name, ratio in found.items()}
        facts = {"machine": describe_machine(), "seconds": round(seconds)}
        facts |= {"processor_seconds": round(processor_seconds), "ratios": ratios}
        KEPT.write_text(json.dumps(facts, indent=2) + "\n")
        print(f"kept as bench/{KEPT.name}")


if __name__ == "__main__":
    main()
