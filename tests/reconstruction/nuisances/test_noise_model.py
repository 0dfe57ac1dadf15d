"""The background that was given, and a dispersion that masks of single frames do not disturb."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from orienteer.compare.shells import radial_mean, shell_index
from orienteer.errors import FileError
from orienteer.reconstruction.emc import Emc
from orienteer.reconstruction.frames.frame_fit import signal_at_poses
from orienteer.reconstruction.settings import EmcSettings
from orienteer.source.patterns import FRAME_MASK


def set_truth(data: Any, emc: Emc) -> None:
    """The true model in both halves, relative to its mean in every shell."""
    truth = data.truth_on(emc)
    index, mean = shell_index(len(truth)), radial_mean(truth)
    relative = np.where(index >= 0, truth / mean[np.maximum(index, 0)], 1.0).astype(np.float32)
    emc.models = np.stack([relative[None]] * emc.n_halves)


@pytest.mark.parametrize("suffix", [".npy", ".h5"])
def test_a_background_is_read_pixel_by_pixel(tiny: Any, tmp_path: Path, suffix: str) -> None:
    background = np.linspace(0, 1, tiny.patterns.n_pixels)
    path = tmp_path / f"background{suffix}"
    if suffix == ".npy":
        np.save(path, background)
    else:
        with h5py.File(path, "w") as file:
            file["background"] = background
    emc = tiny.emc(background_file=str(path), symmetry="I")
    np.testing.assert_allclose(emc.noise.background, background[emc.pixels.index])
    places = emc.work.places
    np.testing.assert_allclose(
        emc.work.pixel_model.background, background[emc.pixels.index][places], rtol=1e-6
    )


@pytest.mark.parametrize("values", [np.ones(5), np.full(196, -1.0), np.full(196, np.nan)])
def test_a_background_that_cannot_be_is_refused(tiny: Any, tmp_path: Path, values: Any) -> None:
    np.save(tmp_path / "b.npy", values)
    with pytest.raises(FileError, match="per pixel"):
        tiny.emc(background_file=str(tmp_path / "b.npy"), symmetry="I")


def test_the_profile_is_that_of_the_signal_alone(simulated: Any, tiny: Any, tmp_path: Path) -> None:
    settings = {"frames": 300, "photons_per_frame": 500}
    clean = simulated(tiny.particle, 14, 65.0, **settings)
    dirty = simulated(tiny.particle, 14, 65.0, **settings, background_photons=500)
    np.save(tmp_path / "b.npy", np.full(196, 500 / 196))
    radius = np.linspace(0.002, 0.015, 20)
    wanted = clean.emc(symmetry="I").profile(radius)
    found = dirty.emc(symmetry="I", background_file=str(tmp_path / "b.npy")).profile(radius)
    untold = dirty.emc(symmetry="I").profile(radius)
    error = np.abs(np.log(found / wanted))
    assert np.median(error) < 0.1
    assert np.median(error) < 0.2 * np.median(np.abs(np.log(untold / wanted)))


def test_pixels_that_frames_forbid_do_not_look_like_errors_of_the_model(simulated: Any, tiny: Any) -> None:
    data = simulated(tiny.particle, 14, 65.0, frames=200, photons_per_frame=3000)
    mask = np.zeros((200, 196), dtype=np.uint8)
    mask[:, :70] = 2
    found = []
    for columns in (data.patterns.columns, {**data.patterns.columns, FRAME_MASK: mask}):
        emc = Emc(data.source(columns=columns), EmcSettings(level=4, diameter_A=200), seed=1, device="cpu")
        set_truth(data, emc)
        emc.annealing.target = 8.0
        emc.noise.dispersion = np.full(40, 0.02)
        emc.step()
        found.append(np.median(emc.noise.dispersion[2:12]))
        assert emc.frames.has_missing == (FRAME_MASK in columns)
    assert found[1] < found[0] + 0.05


@pytest.mark.parametrize("masks", [False, True], ids=["all pixels", "with forbidden pixels"])
def test_sigma_is_the_noise_in_units_of_the_model_and_every_pixel_counts_once(
    simulated: Any, tiny: Any, masks: bool
) -> None:
    """Frames of unequal fluence are sorted into groups, of which the brightest has one frame."""
    data = simulated(tiny.particle, 14, 65.0, frames=120, photons_per_frame=3000, fluence_jitter=1.0)
    columns = dict(data.patterns.columns)
    if masks:
        columns[FRAME_MASK] = np.zeros((120, 196), dtype=np.uint8)
        columns[FRAME_MASK][:, :70] = 2
    settings = EmcSettings(level=3, diameter_A=200, likelihood="gaussian")
    emc = Emc(data.source(columns=columns), settings, seed=1, device="cpu")
    set_truth(data, emc)
    fluence, poses = columns["truth_fluence"], columns["truth_orientation"]
    model = np.zeros(120, dtype=np.int64)
    emc.noise.update(emc.work, emc.models, poses, model, fluence)

    places = emc.work.places[: emc.work.n_scored]
    used = np.concatenate([emc.work.frames_of(0), emc.work.frames_of(1)])
    expected = signal_at_poses(emc.work, emc.models[0], poses[used], model[used]).astype(np.float64)
    pixels = emc.pixels.index[places]
    counts = data.patterns.dense()[used][:, pixels].astype(np.float64)
    seen = np.ones_like(counts, bool) if not masks else columns[FRAME_MASK][used][:, pixels] < 2
    wanted = np.sqrt(((counts / fluence[used, None] - expected)[seen] ** 2).mean())
    assert emc.noise.sigma == pytest.approx(wanted, rel=1e-4)
