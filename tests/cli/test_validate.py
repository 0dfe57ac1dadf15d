"""``orienteer validate``: what it says, that it goes on, and what it refuses."""

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orienteer
from orienteer.particle.named_bodies import random_blobs
from orienteer.reconstruction.settings import EmcSettings
from orienteer.run.lock import PHASING, VALIDATION, RunLock
from orienteer.run.run import Run

WAVELENGTH_A = 2.5
QUICK = (
    "--set", "phase.starts=2", "--set", "phase.schedule=40*raar(0.87) 20*er", "--set",
    "phase.support_volume_A3=1e6", "--replicates", 4, "--random-phases", 1, "--device", "cpu",
)  # fmt: skip


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with 120 small frames and their reconstruction after a few iterations."""
    folder = tmp_path_factory.mktemp("validated")
    detector = orienteer.square_detector(
        14, edge_resolution_A=65.0, wavelength_A=WAVELENGTH_A, pixel_size_m=5e-4
    )
    experiment = orienteer.simulate(
        random_blobs(200.0, 20, 5), orienteer.Beam(wavelength_A=WAVELENGTH_A), detector,
        orienteer.SimulateSettings(frames=120, photons_per_frame=1000, seed=3), device="cpu",
    )  # fmt: skip
    with orienteer.writer_for(folder / "frames.h5", detector=detector) as writer:
        writer.append(experiment.read())
    settings = EmcSettings(level=2, oversampling=3.0, diameter_A=200.0, iterations=6, refine=False)
    for _ in Run.create(folder / "run", folder / "frames.h5", settings, seed=1, device="cpu").iterate():
        pass
    return folder


@pytest.fixture
def small_run(run: Any, made_once: Path) -> Path:
    """The same in the current folder."""
    shutil.copytree(made_once, Path.cwd(), dirs_exist_ok=True)
    return Path("run")


def test_a_run_is_validated_and_the_same_command_finds_it_done(run: Any, small_run: Path) -> None:
    result = run("validate", small_run, *QUICK)
    assert result.status == 0, result.errors
    assert "Two independent runs of" in result.errors
    for words in ("half 1  step 1  ", "half 2  step 1  ", "Phasing the run of all frames.", "comparing the"):
        assert words in result.errors  # a log says whose step it is, and what comes after them
    assert "Two independent halves of" in result.output
    assert "poses of unseen frames" in result.output
    assert (small_run / "density.mrc").exists()
    for name in ("validation.json", "density_half_1.mrc", "density_half_2.mrc", "mask.mrc"):
        assert (small_run / "validation" / name).exists()
    again = run("validate", small_run, *QUICK, "--json")
    assert again.status == 0, again.errors
    assert "done already" in again.errors
    told = again.json
    assert told["statement"] in result.output
    assert told["sentinels"]["frames"] > 0
    assert len(told["halves"]) == 2
    other = run("validate", small_run, *QUICK, "--sentinels", 0.2)
    assert other.status == 1
    assert "--restart" in other.errors


def test_a_stopped_validation_goes_on(run: Any, small_run: Path) -> None:
    words = [str(word) for word in ("validate", small_run, *QUICK)]
    child = subprocess.Popen(
        [sys.executable, "-m", "orienteer", *words], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    while not (small_run / "validation/half_2/checkpoint.h5").exists():
        assert child.poll() is None
        time.sleep(0.005)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=120)
    assert child.returncode == 128 + signal.SIGINT, said
    assert "The same command" in said
    assert "Traceback" not in said
    first = Run.open(small_run / "validation/half_1").volumes()[0].values
    result = run("validate", small_run, *QUICK, "--json")
    assert result.status == 0, result.errors
    assert np.array_equal(
        Run.open(small_run / "validation/half_1").volumes()[0].values, first, equal_nan=True
    )


def test_what_is_no_finished_run_is_refused(run: Any, small_run: Path) -> None:
    assert "there is no such folder" in run("validate", "nowhere").errors
    begun = Run.create("begun", "frames.h5", EmcSettings(), device="cpu")
    result = run("validate", begun.path)
    assert result.status == 1
    assert "has not come to its end" in result.errors


def test_a_damaged_density_of_the_run_is_refused_before_the_halves_begin(run: Any, small_run: Path) -> None:
    (small_run / "phasing.json").write_text("{")
    result = run("validate", small_run, *QUICK)
    assert result.status == 1
    assert "orienteer phase run --restart" in result.errors
    assert not (small_run / "validation").exists()


def test_one_process_validates_a_run_at_a_time(run: Any, small_run: Path) -> None:
    with RunLock(small_run, VALIDATION):
        result = run("validate", small_run, *QUICK)
    assert result.status == 1
    assert "already validating this run" in result.errors
    assert not (small_run / "validation").exists()
    with RunLock(small_run, PHASING):
        result = run("validate", small_run, *QUICK)
    assert "already phasing into this folder" in result.errors
    assert not (small_run / VALIDATION).exists()
