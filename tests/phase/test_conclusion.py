"""Phased starts become a result that says how far it can be trusted."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from orienteer.phase.alignment import shifted
from orienteer.phase.conclusion import conclude
from orienteer.phase.data import PhasingData, phasing_data
from orienteer.phase.half_grid import density_of, transform_of
from orienteer.phase.phasing import phase
from orienteer.phase.result import Phasing
from orienteer.phase.settings import PhaseSettings
from orienteer.volume.volume import Volume

Blobs = Callable[..., NDArray[np.float64]]
N, VOXEL_INV_A = 27, 0.004


def make_data(density: NDArray[np.float64], hole: float = 2.0) -> PhasingData:
    """The intensity of a density, with nothing measured around the centre and in the corners."""
    intensity = np.fft.fftshift(np.abs(np.fft.fftn(density)) ** 2)
    axis = np.arange(N) - N // 2
    radius = np.sqrt(axis[:, None, None] ** 2 + axis[:, None] ** 2 + axis**2)
    intensity[(radius < hole) | (radius > N // 2)] = np.nan
    return phasing_data(Volume(intensity, VOXEL_INV_A, "reciprocal"), device="cpu")


def make_starts(truth: NDArray[np.float64], n_starts: int) -> NDArray[np.float32]:
    rng = np.random.default_rng(0)
    found = []
    for _ in range(n_starts):
        transform = transform_of(truth) if rng.random() < 0.5 else np.conj(transform_of(truth))
        found.append(density_of(shifted(transform, rng.uniform(-4, 4, 3))))
    return np.stack(found).astype(np.float32)


@pytest.fixture
def truth(blobs: Blobs) -> NDArray[np.float64]:
    return blobs(N)


@pytest.fixture
def phasing(truth: NDArray[np.float64]) -> Phasing:
    starts = make_starts(truth, 9)
    starts[8] = np.roll(make_starts(truth**2, 1)[0][:, ::-1], 5, axis=1)  # this one has failed
    scores = np.array([-1.0] * 8 + [-3.0])
    facts = {"seed": 5, "settings": {"starts": 9}, "origin": {"path": "intensity.h5"}}
    return conclude(starts, starts > 0.2, np.full(9, 0.5), scores, scores, make_data(truth), facts=facts)


def test_the_density_of_the_starts_comes_out(phasing: Phasing, truth: NDArray[np.float64]) -> None:
    assert phasing.density.shape == (N, N, N)
    assert phasing.density.voxel_size[0] == pytest.approx(1 / (N * VOXEL_INV_A))
    found = transform_of(np.asarray(phasing.density.values, np.float64))
    agreement = (np.abs(found) * np.abs(transform_of(truth))).sum() / np.sqrt(
        (np.abs(found) ** 2).sum() * (np.abs(transform_of(truth)) ** 2).sum()
    )
    assert agreement > 0.999
    assert len(phasing.clusters.clusters[0]) == 8
    assert phasing.r_factor.overall < 0.1
    assert phasing.background == pytest.approx(0.5)
    assert phasing.seed == 5
    assert phasing.diameter_A is not None
    assert "8 of 9 starts agree" in repr(phasing)


def test_the_arbitrary_scale_is_told(phasing: Phasing) -> None:
    inside = np.asarray(phasing.support.values) > 0.5
    assert np.asarray(phasing.density.values)[inside].mean() == pytest.approx(1, rel=1e-4)
    assert "arbitrary" in str(phasing.density.metadata["unit"])
    assert any("arbitrary" in remark for remark in phasing.remarks)


def test_a_known_number_of_electrons_gives_the_density_of_electrons(truth: NDArray[np.float64]) -> None:
    starts = make_starts(truth, 2)
    found = conclude(starts, starts > -1, np.zeros(2), [0, 0], [0, 0], make_data(truth), electrons=1e5)
    total = found.density.values.sum(dtype=np.float64) * np.prod(found.density.voxel_size)
    assert total == pytest.approx(1e5, rel=1e-3)
    assert found.describe()["unit"] == "electrons / A^3"


def test_a_mixture_of_both_hands_is_told(truth: NDArray[np.float64], phasing: Phasing) -> None:
    assert phasing.other_hand < 0.9
    assert not any("both hands" in remark for remark in phasing.remarks)
    mixed = density_of(2 * transform_of(truth).real.astype(np.complex128))
    starts = make_starts(np.roll(mixed, N // 2, (0, 1, 2)), 2)
    found = conclude(starts, starts > 0.1, np.zeros(2), [2, 2], [2, 2], make_data(truth))
    assert found.other_hand > 0.99
    assert any("both hands" in remark for remark in found.remarks)


def test_a_larger_hole_leaves_more_open(truth: NDArray[np.float64]) -> None:
    starts = make_starts(truth, 2)
    small, large = (
        conclude(starts, starts > 0.1, np.zeros(2), [0, 0], [0, 0], make_data(truth, hole)).weak_modes
        for hole in (1.5, 4.5)
    )
    assert small.number < large.number
    assert small.share < large.share


def test_a_density_that_does_not_foretell_what_it_has_not_seen_is_told_to_be_wrong(
    truth: NDArray[np.float64],
) -> None:
    starts, data = make_starts(truth, 2), make_data(truth)
    sure = replace(data, sigma=0.1 * data.amplitudes**2)
    good, bad, worse = (
        conclude(starts, starts > 0.1, np.zeros(2), [5.0, 5.0], [s, s], sure) for s in (2.0, 0.6, 0.1)
    )  # however well they predict the voxels that chose them
    assert good.unseen_error == pytest.approx(np.exp(-2.5))
    assert good.data_error == pytest.approx(0.05, rel=0.1)  # a tenth of the intensity
    assert not any("does not fit" in remark for remark in good.remarks)
    assert any("off by 33%" in remark for remark in bad.remarks)
    assert any("is noise" in remark for remark in worse.remarks)
    unsure = replace(data, sigma=data.amplitudes**2)
    noisy = conclude(starts, starts > 0.1, np.zeros(2), [5.0, 5.0], [0.6, 0.6], unsure)
    assert not any("does not fit" in remark for remark in noisy.remarks)


def test_phases_that_repeat_a_wrong_density_are_not_taken_for_a_right_one(
    truth: NDArray[np.float64],
) -> None:
    """All starts share a support that is far too small: they agree with each other, and are wrong."""
    axis = np.arange(N) - N // 2
    radius = np.sqrt(axis[:, None, None] ** 2 + axis[:, None] ** 2 + axis**2)
    values = np.fft.fftshift(np.abs(np.fft.fftn(np.where(truth > 0.3, truth, 0))) ** 2)
    intensity = Volume(np.where(radius > N // 2, np.nan, values), VOXEL_INV_A, "reciprocal")
    volume_A3 = (truth > 0.3).sum() / (N * VOXEL_INV_A) ** 3
    right, wrong = (
        phase(
            intensity,
            PhaseSettings(starts=7, schedule="80*raar(0.87) 20*er", support_volume_A3=share * volume_A3),
            device="cpu",
        )
        for share in (1.4, 0.4)
    )
    assert right.prtf.reaches_the_edge
    assert wrong.prtf.values.mean() > 0.5
    assert not any("predicted" in remark or "does not fit" in remark for remark in right.remarks)
    assert any("predicted" in remark or "does not fit" in remark for remark in wrong.remarks)


def test_noise_is_told_from_a_particle_however_well_its_phases_repeat() -> None:
    """Starts agree on what to make of noise, since it is the same for all of them."""
    axis = np.arange(N) - N // 2
    radius = np.sqrt(axis[:, None, None] ** 2 + axis[:, None] ** 2 + axis**2)
    noise = np.where(radius > N // 2, np.nan, np.random.default_rng(0).exponential(size=(N, N, N)))
    settings = PhaseSettings(
        starts=7, schedule="60*raar(0.87) 20*er", diameter_A=110, support_volume_A3=4e5, background=False
    )
    found = phase(Volume(noise, VOXEL_INV_A, "reciprocal"), settings, device="cpu")
    assert found.prtf.values.mean() > 0.5
    assert any("is noise" in remark for remark in found.remarks)
