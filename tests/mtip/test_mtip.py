"""The whole loop: blind, resumed bit for bit, in a run directory, and with nothing but the frames."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import orienteer
from orienteer.compare.alignment import align_intensities
from orienteer.compare.comparison import compare
from orienteer.compare.shells import shell_index
from orienteer.compute.arrays import DeviceName, to_numpy
from orienteer.errors import SettingsError
from orienteer.mtip.mtip import Mtip
from orienteer.mtip.settings import MtipSettings
from orienteer.particle.bodies import sphere
from orienteer.run.run import Run
from orienteer.source.in_memory import InMemorySource
from orienteer.source.patterns import Patterns

SETTINGS = MtipSettings(diameter_A=200.0, level=4)


def finished(mtip: Mtip) -> list[Any]:
    steps = []
    while not mtip.finished:
        steps.append(mtip.step())
    return steps


@pytest.fixture(scope="module")
def blind(frames_of_blobs: SimpleNamespace) -> tuple[Mtip, list[Any]]:
    mtip = Mtip(frames_of_blobs.source, SETTINGS, seed=1, device="cpu")
    return mtip, finished(mtip)


@pytest.mark.timeout(600)
def test_an_object_is_found_from_a_random_start(
    blind: tuple[Mtip, list[Any]], frames_of_blobs: SimpleNamespace
) -> None:
    mtip, steps = blind
    volume = mtip.volumes()[0]
    true = frames_of_blobs.intensity(len(volume.values), volume.voxel_size[0])
    correlation = align_intensities(true, volume.values, last_shell=12).shells.correlation
    assert correlation[2:12].mean() > 0.9
    assert steps[-1].log_likelihood > steps[0].log_likelihood + 5
    assert steps[-1].half_correlation > 0.6
    assert mtip.reason
    assert mtip.orientations()["quaternion"].shape == (80, 4)
    # Phasing took part in it, with one density for each volume and half.
    assert sorted(mtip._phasings) == [(0, 0), (1, 0)]


@pytest.mark.timeout(600)
def test_the_radial_mean_that_is_shown_has_the_rings_of_the_intensity(
    blind: tuple[Mtip, list[Any]],
) -> None:
    mtip, steps = blind
    values = np.asarray(mtip.volumes()[0].values, np.float64)
    shell = shell_index(len(values))
    shown = np.array(steps[-1].radial["intensity"])
    shells = np.arange(1, len(shown) + 1)  # the first radius is one voxel
    mean = np.array([np.nanmean(values[shell == radius]) for radius in shells])
    error = np.log(shown / mean)
    envelope = np.log(mtip.profile(np.array(steps[-1].radial["q_inv_A"])) / mean)
    assert np.sqrt(np.mean(error**2)) < 0.5 * np.sqrt(np.mean(envelope**2))


@pytest.mark.timeout(600)
def test_the_density_of_the_loop_is_that_of_the_object(
    blind: tuple[Mtip, list[Any]], frames_of_blobs: SimpleNamespace
) -> None:
    (density,) = blind[0].densities()
    found = compare(frames_of_blobs.particle, density)
    assert found.correlation > 0.75
    assert found.resolution.resolution_A is not None
    assert found.resolution.resolution_A < 75


def some_steps(source: Any, n: int) -> Mtip:
    mtip = Mtip(source, SETTINGS, seed=1, device="cpu")
    for _ in range(n):
        mtip.step()
    return mtip


@pytest.mark.timeout(600)
def test_a_state_goes_on_bit_for_bit_with_its_densities(
    frames_of_blobs: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orienteer.mtip.mtip.Mtip._is_too_early", lambda self, model: False)
    straight = some_steps(frames_of_blobs.source, 2)
    state = {
        name: np.array(value) if isinstance(value, np.ndarray) else value
        for name, value in straight.state().items()
    }
    assert any(name.startswith("phasing/") for name in state)
    densities = straight.densities()
    expected = straight.step(), straight.step()
    resumed = Mtip(frames_of_blobs.source, SETTINGS, seed=1, device="cpu")
    resumed.restore(state)
    assert np.array_equal(resumed.densities()[0].values, densities[0].values)
    found = resumed.step(), resumed.step()
    for one, other in zip(expected, found, strict=True):
        assert one.log_likelihood == other.log_likelihood
        assert one.change == other.change
    assert np.array_equal(resumed.models, straight.models)


def test_no_clock_decides_what_is_deterministic(
    frames_of_blobs: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How slices are had at least cost is measured; of weak frames, kept ones have other last bits."""

    def measured(*_: Any, **__: Any) -> None:
        raise AssertionError("a choice was made by measured times")

    monkeypatch.setattr("orienteer.mtip.references.keeper.measure_rates", measured)
    settings = MtipSettings(diameter_A=200.0, level=2, deterministic=True)
    mtip = Mtip(frames_of_blobs.source, settings, seed=1, device="cpu")
    assert np.isfinite(mtip.step().log_likelihood)


def test_exact_sums_are_refused_where_runs_must_be_deterministic(frames_of_blobs: SimpleNamespace) -> None:
    """Threads of the CPU and of a GPU add to them in any order."""
    settings = MtipSettings(diameter_A=200.0, deterministic=True, merging="exact")
    with pytest.raises(SettingsError, match="order that changes from run to run") as refused:
        Mtip(frames_of_blobs.source, settings, seed=1, device="cpu")
    assert 'mtip.merging = "grid"' in refused.value.hint


def test_the_truth_beside_the_frames_is_never_read(frames_of_blobs: SimpleNamespace) -> None:
    source = frames_of_blobs.source
    told = source.read()
    bare = Patterns(told.frames, told.event_id, {"wavelength_A": told.columns["wavelength_A"]})
    blank = InMemorySource(bare, source.detector.frame_shape).with_detector(source.detector)
    assert np.array_equal(some_steps(blank, 2).models, some_steps(source, 2).models)


def test_a_run_directory_holds_it_as_any_other_method(
    frames_of_blobs: SimpleNamespace, tmp_path: Any
) -> None:
    run = Run.create(tmp_path / "run", frames_of_blobs.source, SETTINGS, seed=1, device="cpu", method="mtip")
    first = list(run.iterate(2))
    again = Run.open(tmp_path / "run", frames_of_blobs.source)
    assert again.method == "mtip"
    assert isinstance(again.settings, MtipSettings)
    second = list(again.iterate(1))
    assert [step.iteration for step in (*first, *second)] == [1, 2, 3]
    assert np.isfinite(again.volumes()[0].values).any()
    assert not (tmp_path / "run" / "density_loop.mrc").exists()  # it has not phased yet
    assert "[mtip]" in (tmp_path / "run" / "settings.toml").read_text()


def test_without_halves_or_phasing_it_runs_too(frames_of_blobs: SimpleNamespace) -> None:
    settings = MtipSettings(diameter_A=200.0, level=4, halves=False, sentinels=0.0, phasing=False)
    mtip = Mtip(frames_of_blobs.source, settings, seed=1, device="cpu")
    steps = [mtip.step() for _ in range(3)]
    assert steps[-1].half_correlation is None
    assert steps[-1].log_likelihood > steps[0].log_likelihood


def test_a_symmetric_particle_has_symmetric_models(frames_of_blobs: SimpleNamespace) -> None:
    settings = MtipSettings(diameter_A=200.0, level=4, symmetry="C2")
    mtip = Mtip(frames_of_blobs.source, settings, seed=1, device="cpu")
    mtip.step()
    half_turn = mtip.models[..., ::-1, ::-1, :]
    assert np.allclose(mtip.models, half_turn, atol=0.02)


@pytest.mark.timeout(600)
def test_merging_pixel_by_pixel_finds_what_the_grid_finds(frames_of_blobs: SimpleNamespace) -> None:
    """One scale and one sharpness: what the frames of a half say, through a grid and without one."""
    found = {}
    for merging in ("grid", "exact"):
        settings = MtipSettings(
            diameter_A=200.0, level=4, merging=merging, phasing=False, symmetry="C2", tolerance=1e-3
        )  # fmt: skip
        mtip = Mtip(frames_of_blobs.source, settings, seed=1, device="cpu")
        for _ in range(2):
            mtip.step()
        found[merging] = mtip
    grid, exact = (found[merging].full[0] for merging in ("grid", "exact"))
    axis = np.arange(len(grid)) - len(grid) // 2
    inside = axis[:, None, None] ** 2 + axis[:, None] ** 2 + axis**2 < (0.8 * len(grid) // 2) ** 2
    a, b = grid[inside] - grid[inside].mean(), exact[inside] - exact[inside].mean()
    assert (a * b).sum() > 0.97 * np.sqrt((a * a).sum() * (b * b).sum())
    assert grid[inside].mean() == pytest.approx(exact[inside].mean(), rel=0.05)
    assert (b * b).sum() == pytest.approx((a * a).sum(), rel=0.25)


@pytest.mark.parametrize("oversampling", [3.0, 6.0])
def test_the_truth_stays_put_whatever_the_oversampling(
    oversampling: float, frames_of_blobs: SimpleNamespace
) -> None:
    """Slices and merges speak of the same places: frames of the truth do not move it."""
    settings = MtipSettings(diameter_A=320.0, level=4, oversampling=oversampling, phasing=False)
    mtip = Mtip(frames_of_blobs.source, settings, seed=1, device="cpu")
    mtip.enter(1)
    grid, work = mtip._grid, mtip.work
    axis = (np.arange(grid.edge) - grid.edge // 2) * grid.voxel_inv_A
    length = np.sqrt(axis[:, None, None] ** 2 + axis[:, None] ** 2 + axis**2)
    intensity = frames_of_blobs.intensity(grid.edge, grid.voxel_inv_A)
    seen = length < work.stage.scored_inv_A
    # The simulated photons have a scale of their own.
    intensity *= mtip.profile(length)[seen].sum() / intensity[seen].sum()
    z = grid.autocorrelation(np.where(seen, intensity / mtip.profile(length), 1.0)) * grid.support
    true = grid.intensity(z)
    sharp = np.maximum(grid.intensity(z * grid.sharpening), 0.02).astype(np.float32)
    mtip.models = np.stack([sharp[None]] * 2)
    mtip.full = true[None].astype(np.float32)
    for _ in range(2):
        _, found = mtip.new_models(mtip.noise.likelihood(work), 1.0)
        mtip.take_models(found)
    now = np.stack([mtip.models[0, 0], sharp])[:, length < 0.7 * work.stage.scored_inv_A]
    assert np.corrcoef(now)[0, 1] > 0.95
    contrast = now.std(axis=1) / now.mean(axis=1)
    assert contrast[0] == pytest.approx(contrast[1], rel=0.15)


@pytest.mark.gpu
def test_the_gpu_does_the_same(frames_of_blobs: SimpleNamespace) -> None:
    found = []
    devices: tuple[DeviceName, ...] = ("cpu", "cuda")
    for device in devices:
        mtip = Mtip(frames_of_blobs.source, SETTINGS, seed=1, device=device)
        steps = [mtip.step() for _ in range(3)]
        found.append((steps[-1].log_likelihood, to_numpy(mtip.full)))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-4)
    assert np.corrcoef(found[0][1].ravel(), found[1][1].ravel())[0, 1] > 0.999


def test_a_model_of_noise_explains_sentinels_no_better_than_a_round_particle() -> None:
    """Frames of a ball say nothing about orientations; its rings belong to a round particle, too."""
    detector = orienteer.square_detector(14, edge_resolution_A=65.0, wavelength_A=2.5, pixel_size_m=5e-4)
    simulated = orienteer.SimulateSettings(frames=80, photons_per_frame=3000, seed=3)
    beam = orienteer.Beam(wavelength_A=2.5)
    frames = orienteer.simulate(sphere(100.0), beam, detector, simulated, device="cpu").read()
    source = InMemorySource(frames, detector.frame_shape).with_detector(detector)
    settings = MtipSettings(diameter_A=200.0, level=4, sentinels=0.3, likelihood="poisson")
    mtip = Mtip(source, settings, seed=1, device="cpu")
    assert mtip.step().sentinel_gain_nats < 3
