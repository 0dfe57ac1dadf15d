"""Drawing the truth: distributions, and independence of batches and of one another."""

from typing import Any

import numpy as np
import pytest

from orienteer.detector.beam import Beam
from orienteer.detector.spectrum import SaseSpectrum, Spectrum
from orienteer.errors import OrienteerError, SettingsError
from orienteer.orientation.quaternion import random_uniform
from orienteer.simulation.settings import SimulateSettings
from orienteer.simulation.truth import ShotKind
from orienteer.simulation.truth_sampler import BLOCK, TruthSampler

N = 3 * BLOCK


def sampler(beam: Beam | None = None, weights: Any = (1.0,), **settings: Any) -> TruthSampler:
    beam = Beam(photon_energy_eV=4600) if beam is None else beam
    arrays = {name: settings.pop(name) for name in ("orientations", "fluences") if name in settings}
    return TruthSampler(SimulateSettings(**settings), beam, weights, [50.0] * len(weights), 3, **arrays)


def test_jitters_have_mean_one_and_the_spread_asked_for() -> None:
    truth = sampler(fluence_jitter=0.5, size_spread=0.1, background_jitter=0.3).shots(0, N)
    for values, spread in ((truth.fluence, 0.5), (truth.size, 0.1), (truth.background, 0.3)):
        assert values.mean() == pytest.approx(1, abs=5 * spread / np.sqrt(N))
        assert values.std() == pytest.approx(spread, rel=0.06)
        assert values.min() > 0


def test_nothing_jitters_by_default() -> None:
    truth = sampler().shots(0, 100)
    for values in (truth.fluence, truth.size, truth.background, truth.line_weight):
        assert (values == 1).all()
    assert not truth.offset_m.any()
    assert (truth.kind == ShotKind.HIT).all()
    assert (truth.energy_eV == 4600).all()


def test_measured_fluences_are_drawn_and_scaled_to_mean_one() -> None:
    truth = sampler(fluences=[1.0, 2.0, 3.0]).shots(0, N)
    assert set(np.unique(truth.fluence)) == {0.5, 1.0, 1.5}
    assert truth.fluence.mean() == pytest.approx(1, abs=0.02)
    with pytest.raises(OrienteerError, match="fluences"):
        sampler(fluences=[1.0, np.nan])


def test_kinds_and_classes_have_their_shares() -> None:
    draw = sampler(
        weights=[0.7, 0.3], empty_fraction=0.2, junk_fraction=0.1, multiple_fraction=0.3, most_particles=4
    )
    truth = draw.shots(0, N)
    for kind, share in {"EMPTY": 0.2, "JUNK": 0.1, "MULTIPLE": 0.3, "HIT": 0.4}.items():
        assert (truth.kind == ShotKind[kind]).mean() == pytest.approx(share, abs=5 * np.sqrt(share / N))
    hits = truth.kind == ShotKind.HIT
    assert (truth.particle_class[hits, 0] == 1).mean() == pytest.approx(0.3, abs=0.05)
    present = (truth.particle_class >= 0).sum(1)
    assert set(present[hits]) == {1}
    assert set(present[truth.kind == ShotKind.EMPTY]) == {0}
    assert set(present[truth.kind == ShotKind.MULTIPLE]) == {2, 3, 4}
    columns = truth.columns()
    assert set(np.unique(columns["truth_class"][~hits & (truth.kind != ShotKind.MULTIPLE)])) == {-1}


def test_particles_of_one_shot_touch_or_keep_their_distance() -> None:
    touching = sampler(multiple_fraction=1.0).shots(0, 500)
    distance = np.linalg.norm(touching.position_A[:, 1] - touching.position_A[:, 0], axis=1)
    assert distance.min() >= 100
    assert distance.max() <= 110
    many = sampler(multiple_fraction=1.0, most_particles=8, size_spread=0.2).shots(0, 500)
    present = many.particle_class >= 0
    distance = np.linalg.norm(many.position_A[:, :, None] - many.position_A[:, None], axis=-1)
    touching = 50 * (many.size[:, :, None] + many.size[:, None])
    pairs = present[:, :, None] & present[:, None] & ~np.eye(8, dtype=bool)
    assert (distance > touching)[pairs].all()
    apart = sampler(multiple_fraction=1.0, separation_A=5000).shots(0, 4000)
    distance = np.linalg.norm(apart.position_A[:, 1], axis=1)
    assert distance.mean() == pytest.approx(5000, rel=0.03)


def test_every_particle_of_a_shot_has_its_own_size() -> None:
    truth = sampler(multiple_fraction=1.0, most_particles=3, size_spread=0.1).shots(0, N)
    assert truth.size.shape == (N, 3)
    assert truth.size.std(0) == pytest.approx([0.1] * 3, rel=0.06)
    assert np.abs(np.corrcoef(truth.size.T) - np.eye(3)).max() < 0.05
    columns = truth.columns()
    np.testing.assert_array_equal(columns["truth_sizes"], truth.size)
    np.testing.assert_array_equal(columns["truth_size"], truth.size[:, 0])


def test_particles_interfere_when_the_widest_pair_is_near_enough() -> None:
    settings = SimulateSettings(multiple_fraction=0.7, most_particles=4)
    truth = TruthSampler(settings, Beam(photon_energy_eV=4600), [1.0], [50.0], widest_coherent_A=180).shots(
        0, 500
    )
    between = truth.position_A[:, :, None] - truth.position_A[:, None]
    widest = np.sqrt((between**2).sum(-1)).max((1, 2))
    several = truth.kind == ShotKind.MULTIPLE
    np.testing.assert_array_equal(truth.interferes, several & (widest <= 180))
    assert 0 < truth.interferes[several].mean() < 1
    # Measured from the first particle alone, some of them would seem near enough.
    assert (np.linalg.norm(truth.position_A, axis=2).max(1) <= 180)[several & ~truth.interferes].any()
    columns = truth.columns()
    np.testing.assert_array_equal(columns["truth_interference"], truth.interferes)
    np.testing.assert_allclose(columns["truth_separation_A"], widest)


def test_shots_without_a_particle_have_no_orientation() -> None:
    truth = sampler(empty_fraction=0.3, junk_fraction=0.3).shots(0, 200)
    absent = np.isin(truth.kind, (ShotKind.EMPTY, ShotKind.JUNK))
    columns = truth.columns()
    assert np.isnan(columns["truth_orientation"][absent]).all()
    np.testing.assert_array_equal(columns["truth_orientation"][~absent], truth.orientation[~absent, 0])


def test_frames_of_any_numbers_in_any_order_are_those_of_their_range() -> None:
    draw = sampler(fluence_jitter=0.3, multiple_fraction=0.2)
    numbers = np.array([BLOCK + 3, 5, 2, 3 * BLOCK - 1, 5, BLOCK])
    whole, some = draw.shots(0, 3 * BLOCK).columns(), draw.frames(numbers).columns()
    for name, column in some.items():
        np.testing.assert_array_equal(column, whole[name][numbers], err_msg=name)
    assert len(draw.shots(0, 0)) == 0
    for first in (-3, 2**40):
        with pytest.raises(OrienteerError, match="numbers go from 0"):
            draw.shots(first, first + 2)


def test_a_shot_is_the_same_in_any_range() -> None:
    beam = Beam(photon_energy_eV=4600, spectrum=SaseSpectrum(0.005, 4))
    draw = sampler(
        beam,
        fluence_jitter=0.3,
        size_spread=0.05,
        centre_jitter_m=1e-3,
        empty_fraction=0.1,
        multiple_fraction=0.2,
    )
    whole = draw.shots(0, BLOCK + 50).columns()
    for first, last in ((0, 7), (BLOCK - 3, BLOCK + 11), (BLOCK, BLOCK + 1)):
        part = draw.shots(first, last).columns()
        for name, column in part.items():
            np.testing.assert_array_equal(column, whole[name][first:last], err_msg=name)


def test_switching_one_effect_on_changes_no_other() -> None:
    plain = sampler().shots(0, 50)
    rich = sampler(
        fluence_jitter=0.3, multiple_fraction=0.5, most_particles=5, junk_fraction=0.2, size_spread=0.1
    ).shots(0, 50)
    np.testing.assert_array_equal(plain.orientation[:, 0], rich.orientation[:, 0])


def test_the_seed_changes_everything() -> None:
    a, b = (sampler(fluence_jitter=0.3, seed=seed).shots(0, 50) for seed in (1, 2))
    assert not np.isclose(a.orientation, b.orientation).all(-1).any()
    assert not np.isclose(a.fluence, b.fluence).any()


def test_given_orientations_are_taken_in_turn() -> None:
    quaternions = random_uniform(3, seed=1)
    truth = sampler(orientations=quaternions).shots(2, 7)
    np.testing.assert_allclose(truth.orientation[:, 0], quaternions[[2, 0, 1, 2, 0]])


def test_orientations_are_uniform() -> None:
    w = sampler().shots(0, N).orientation[:, 0]
    second_moment = np.einsum("ni,nj->ij", w, w) / N
    np.testing.assert_allclose(second_moment, np.eye(4) / 4, atol=0.02)


def test_spectra_sum_to_one_and_stay_within_the_limits() -> None:
    beam = Beam(photon_energy_eV=4600, spectrum=SaseSpectrum(0.02, 6))
    draw = sampler(beam)
    truth = draw.shots(0, N)
    np.testing.assert_allclose(truth.line_weight.sum(1), 1)
    assert truth.energy_eV.max() <= draw.energy_limits_eV[1]
    assert truth.mean_energy_eV.mean() == pytest.approx(4600, rel=1e-3)
    columns = truth.columns()
    assert columns["truth_line_energies_eV"].shape == (N, 6)
    np.testing.assert_allclose(columns["wavelength_A"], 12398.419843320026 / truth.mean_energy_eV)


@pytest.mark.parametrize("lines", [(1.0,), (0.98, 1.0, 1.01), (1.01, 1.02), (0.9, 0.95), (0.5, 3.0)])
def test_the_lines_of_a_fixed_spectrum_are_kept_exactly(lines: tuple[float, ...]) -> None:
    draw = sampler(Beam(photon_energy_eV=4600, spectrum=Spectrum(lines, np.arange(1, len(lines) + 1))))
    truth = draw.shots(0, 10)
    np.testing.assert_array_equal(
        truth.energy_eV, np.broadcast_to(np.multiply(lines, 4600), (10, len(lines)))
    )
    assert draw.energy_limits_eV == (4600 * min(lines), 4600 * max(lines))


def test_sizes_and_offsets_stay_below_what_the_grid_was_made_for() -> None:
    draw = sampler(size_spread=0.3, centre_jitter_m=1e-3)
    truth = draw.shots(0, N)
    assert truth.size.max() <= draw.largest_size
    assert np.abs(truth.offset_m).max() <= draw.largest_offset_m
    assert truth.offset_m.std(0) == pytest.approx([1e-3, 1e-3], rel=0.05)


@pytest.mark.parametrize(
    "wrong",
    [
        {"empty_fraction": 0.6, "junk_fraction": 0.6},
        {"gain_ratios": (0.1,)},
        {"gain_ratios": (0.1, 0.01), "gain_thresholds_photons": (50.0, 5.0)},
        {"frames": 0},
        {"no_such_key": 1},
    ],
)
def test_settings_that_contradict_each_other_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError):
        SimulateSettings(**wrong)
