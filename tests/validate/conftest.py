"""A small good data set with its reconstruction, and frames that show nothing at all."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orienteer
from orienteer.orientation.point_group import as_point_group
from orienteer.orientation.quaternion import rotate
from orienteer.particle.structure import Structure, blobs
from orienteer.reconstruction.settings import EmcSettings
from orienteer.run.run import Run
from orienteer.source.patterns import Patterns

WAVELENGTH_A, DIAMETER_A, N_PIXELS, EDGE_A = 2.5, 200.0, 16, 55.0
SETTINGS = EmcSettings(symmetry="D2", level=3, oversampling=3.0, diameter_A=DIAMETER_A)


def two_fold_object() -> Structure:
    """Four balls at random places, each with all its equivalents about three axes."""
    rng = np.random.default_rng(3)
    distances_A = np.array([60.0, 75.0, 85.0, 70.0])
    places = rng.normal(size=(4, 3))
    places *= (distances_A / np.linalg.norm(places, axis=1))[:, None]
    turns = as_point_group("D2").quaternions
    weights = rng.uniform(500, 1500, 4)
    return blobs(rotate(turns[:, None], places[None]).reshape(-1, 3), np.tile(weights, 4), 9.0)


def small_detector() -> Any:
    return orienteer.square_detector(
        N_PIXELS, edge_resolution_A=EDGE_A, wavelength_A=WAVELENGTH_A, pixel_size_m=5e-4
    )


def write_frames(path: Path, patterns: Patterns) -> Path:
    with orienteer.writer_for(path, detector=small_detector()) as writer:
        writer.append(patterns)
    return path


def good_frames(n_frames: int = 340) -> Patterns:
    experiment = orienteer.simulate(
        two_fold_object(), orienteer.Beam(wavelength_A=WAVELENGTH_A), small_detector(),
        orienteer.SimulateSettings(frames=n_frames, photons_per_frame=2000, seed=3), device="cpu",
    )  # fmt: skip
    return experiment.read().with_event_ids(np.arange(500, 500 + n_frames, dtype=np.uint64))


def noise_frames(good: Patterns, n_frames: int) -> Patterns:
    """Photons as if nothing had structure: Poisson numbers about the radial mean of good frames."""
    q = small_detector().q_inv_A(WAVELENGTH_A)
    ring = np.rint(np.linalg.norm(q, axis=1) * DIAMETER_A * 2).astype(np.int64)
    mean = good.dense().mean(axis=0)
    radial = np.bincount(ring, mean) / np.maximum(np.bincount(ring), 1)
    counts = np.random.default_rng(11).poisson(radial[ring], (n_frames, len(ring))).astype(np.int32)
    return Patterns(counts, np.arange(n_frames), {"wavelength_A": np.full(n_frames, WAVELENGTH_A)})


def finished_run(folder: Path, data: Any, settings: EmcSettings = SETTINGS, seed: int = 2) -> Run:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = Run.create(folder, data, settings, seed=seed, device="cpu")
        for _ in run.iterate():
            pass
    return run


@pytest.fixture(scope="session")
def good_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The reconstruction of 340 bright frames; tests read it and write elsewhere."""
    folder = tmp_path_factory.mktemp("good")
    write_frames(folder / "frames.h5", good_frames())
    return finished_run(folder / "run", folder / "frames.h5")


@pytest.fixture(scope="session")
def good_halves(good_run: Run) -> Any:
    """Its frames in three parts, and the finished runs of the halves, where a validation looks for them."""
    from orienteer.validate.half_runs import half_runs, iterate_halves
    from orienteer.validate.half_sets import split

    parts = split(good_run.source, 0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runs = half_runs(good_run, parts)
        for _ in iterate_halves(runs):
            pass
    return parts, runs


@pytest.fixture(scope="session")
def noise_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A reconstruction of frames in which there is nothing: it makes up its orientations."""
    folder = tmp_path_factory.mktemp("noise")
    write_frames(folder / "frames.h5", noise_frames(good_frames(100), 200))
    settings = SETTINGS.model_copy(update={"symmetry": "C1", "iterations": 10, "refine": False})
    return finished_run(folder / "run", folder / "frames.h5", settings)


@pytest.fixture(scope="session")
def short_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of few iterations, which need not find anything."""
    folder = tmp_path_factory.mktemp("short")
    write_frames(folder / "frames.h5", good_frames(160))
    settings = SETTINGS.model_copy(update={"iterations": 3, "refine": False})
    return finished_run(folder / "run", folder / "frames.h5", settings)
