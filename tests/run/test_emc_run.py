"""A run of the real method: stopped, killed or left without room, it ends in the same bits."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h5py
import numpy as np
import pytest

import orienteer
from orienteer.errors import OrienteerError
from orienteer.mtip.settings import MtipSettings
from orienteer.particle.named_bodies import random_blobs
from orienteer.reconstruction.settings import EmcSettings
from orienteer.run.run import Run

# The icosahedral group leaves few poses, so that stages are over soon.
SETTINGS = EmcSettings(symmetry="I", diameter_A=200, models=2, junk_classes=1, starts=2, oversampling=2.0)
FLAGS = (
    "--symmetry",
    "I",
    "--diameter-A",
    "200",
    "--models",
    "2",
    "--junk-classes",
    "1",
    "--starts",
    "2",
    "--set",
    "emc.oversampling=2.0",
    "--device",
    "cpu",
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    detector = orienteer.square_detector(14, edge_resolution_A=65, wavelength_A=2.5, pixel_size_m=5e-4)
    settings = orienteer.SimulateSettings(frames=100, photons_per_frame=300, fluence_jitter=0.5, seed=3)
    beam = orienteer.Beam(wavelength_A=2.5)
    experiment = orienteer.simulate(random_blobs(200.0, 20, 5), beam, detector, settings, device="cpu")
    path = tmp_path_factory.mktemp("data") / "frames.h5"
    with orienteer.writer_for(path, like=experiment) as writer:
        writer.append(experiment.read())
    return path


def outcome(runs: SimpleNamespace, path: Path) -> dict[str, Any]:
    found: dict[str, Any] = runs.outcome(path)
    for step in found["steps"]:
        del step["seconds"], step["seconds_left"]
    return found


@pytest.fixture(scope="module")
def whole(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody disturbed."""
    path = tmp_path_factory.mktemp("runs") / "whole"
    for _ in Run.create(path, orienteer.open(data), SETTINGS, seed=1, device="cpu").iterate():
        pass
    return path


def test_a_run_says_why_it_ended_and_keeps_all_results(whole: Path, data: Path) -> None:
    run = Run.open(whole)
    assert run.finished
    assert run.reason[0].isupper()
    assert run.reason.endswith(".")
    frames = orienteer.open(data)
    found = run.orientations()
    assert np.array_equal(found["event_id"], frames.event_ids())
    assert np.linalg.norm(found["quaternion"], axis=1) == pytest.approx(1.0)
    assert found["fluence"].min() > 0
    assert set(np.unique(found["half"])) == {0, 1}
    first, second = run.volumes()
    assert first.space == "reciprocal"
    assert not np.array_equal(first.values, second.values)
    assert run.steps[-1]["seconds_left"] == 0
    assert all(step["seconds_left"] > 0 for step in run.steps[:-1])


def test_left_and_resumed_at_every_step_a_run_ends_the_same(
    whole: Path, data: Path, runs: SimpleNamespace, tmp_path: Path
) -> None:
    """Each step by a new process as it were: the method is built anew from the checkpoint."""
    path = tmp_path / "run"
    for _ in range(1000):
        run = Run.create(path, orienteer.open(data), SETTINGS, seed=1, device="cpu")
        if run.finished:
            break
        list(run.iterate(5))
    assert outcome(runs, path) == outcome(runs, whole)


def test_a_limit_raised_at_every_step_ends_in_the_same_bits(
    whole: Path, data: Path, runs: SimpleNamespace, tmp_path: Path
) -> None:
    """Also where the limit falls on the step after which a stage or a start is over."""
    path = tmp_path / "run"
    for limit in [*range(3, Run.open(whole).iteration, 3), 400]:
        settings = SETTINGS.model_copy(update={"iterations": limit})
        run = Run.create(path, orienteer.open(data), settings, seed=1, device="cpu")
        list(run.iterate())
        assert run.finished
        assert (f"limit of {limit} iterations" in run.reason) == (limit < 400)
    found, wanted = outcome(runs, path), outcome(runs, whole)
    for step in [*found["steps"], *wanted["steps"]]:
        del step["finished"], step["reason"]
    assert found == wanted


AT_ONCE = pytest.mark.slow(
    reason="the same command killed resumes every time; test_signals.py has interrupts"
)


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGKILL, -9), pytest.param(signal.SIGINT, 130, marks=AT_ONCE)]
)
def test_the_command_killed_or_interrupted_resumes_by_itself(
    number: signal.Signals, status: int, whole: Path, data: Path, runs: SimpleNamespace, tmp_path: Path
) -> None:
    path = tmp_path / "run"
    program = [sys.executable, "-m", "orienteer", "reconstruct"]
    command = [*program, str(data), "--out", str(path), "--seed", "1", *FLAGS]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    events = path / "events.jsonl"
    while child.poll() is None and (not events.exists() or events.read_text().count('"step"') < 2):
        time.sleep(0.005)
    child.send_signal(number)
    _, said = child.communicate(timeout=60)
    assert child.returncode == status, said
    assert not Run.open(path).finished
    if number == signal.SIGINT:
        assert "same command resumes" in said
        assert said.count("Stopped") == 1
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    report = json.loads(done.stdout)
    assert report["finished"]
    assert report["remarks"] == []
    assert outcome(runs, path) == outcome(runs, whole)


def test_a_full_disk_is_a_sentence_and_the_run_goes_on(
    whole: Path, data: Path, runs: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run"
    run = Run.create(path, orienteer.open(data), SETTINGS, seed=1, device="cpu")
    steps = run.iterate()
    next(steps)
    replace, n_calls = os.replace, 0

    def no_room(source: Any, target: Any) -> None:
        nonlocal n_calls
        n_calls += 1
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr(os, "replace", no_room)
    with pytest.raises(OrienteerError) as caught:
        list(steps)
    assert n_calls > 0
    assert "full" in str(caught.value)
    assert "resumes" in str(caught.value)
    monkeypatch.setattr(os, "replace", replace)
    list(Run.create(path, orienteer.open(data), SETTINGS, seed=1, device="cpu").iterate())
    assert outcome(runs, path) == outcome(runs, whole)


def test_data_that_the_method_refuses_leave_no_run(data: Path, tmp_path: Path) -> None:
    """So that the same command works once the data are mended."""
    source = orienteer.open(data)
    never = source.detector.with_mask(np.full(source.n_pixels, 2, np.uint8))
    path = tmp_path / "run"
    with pytest.raises(OrienteerError, match="no pixels that could orient"):
        list(Run.create(path, source.with_detector(never), SETTINGS, device="cpu").iterate())
    assert not path.exists()
    assert next(Run.create(path, source, SETTINGS, device="cpu").iterate()).iteration == 1


def test_a_run_of_another_method_is_refused_by_the_method_alone(data: Path, tmp_path: Path) -> None:
    """Its settings are all other ones; a list of them would hide what was asked for."""
    source, path = orienteer.open(data), tmp_path / "run"
    next(Run.create(path, source, SETTINGS, device="cpu").iterate())
    with pytest.raises(OrienteerError) as caught:
        Run.create(path, source, MtipSettings(), device="cpu", method="mtip")
    assert "Different now: the method (mtip instead of emc).\n" in str(caught.value)


def test_settings_of_mtip_are_not_taken_for_those_of_emc(data: Path, tmp_path: Path) -> None:
    with pytest.raises(OrienteerError, match=r"MtipSettings holds no settings of the method 'emc'"):
        Run.create(tmp_path / "run", data, MtipSettings(), device="cpu")
    assert not (tmp_path / "run").exists()


def test_a_remark_about_the_data_is_shown_and_kept(data: Path, tmp_path: Path) -> None:
    source = orienteer.open(data)
    wavelengths = np.linspace(2.4, 2.6, len(source))
    patterns = source.read()
    varied = orienteer.Patterns(patterns.frames, patterns.event_id, {"wavelength_A": wavelengths})
    run = Run.create(
        tmp_path / "run", orienteer.open(varied, geometry=source.detector), SETTINGS, device="cpu"
    )
    with pytest.warns(UserWarning, match="wavelengths vary by 2.3%"):
        next(run.iterate())
    assert len(run.remarks) == 1


def test_files_for_dragonfly_are_written_when_asked_for(data: Path, tmp_path: Path) -> None:
    settings = SETTINGS.model_copy(update={"dragonfly_output": True})
    run = Run.create(tmp_path / "run", orienteer.open(data), settings, seed=1, device="cpu")
    list(run.iterate(2))
    names = sorted(path.name for path in (tmp_path / "run" / "dragonfly").iterdir())
    assert names == ["output_001.h5", "output_002.h5"]
    with h5py.File(tmp_path / "run" / "dragonfly" / names[1]) as file:
        assert file["intens"].shape[0] == len(run.volumes())
        assert np.array_equal(np.nan_to_num(file["intens"][0]), np.nan_to_num(run.volumes()[0].values))
