"""The experiment: every effect against an exact calculation, and frames that do not depend on batching."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orienteer.detector.beam import HC_EV_A, Beam
from orienteer.detector.masks import PixelUse
from orienteer.detector.spectrum import SaseSpectrum, Spectrum
from orienteer.detector.square import square_detector
from orienteer.errors import FileError, OrienteerError
from orienteer.orientation.quaternion import random_uniform, to_matrix
from orienteer.particle.bodies import sphere
from orienteer.particle.conformations import Ensemble
from orienteer.particle.structure import Structure, blobs
from orienteer.simulation.experiment import Experiment, simulate
from orienteer.simulation.settings import SimulateSettings
from orienteer.simulation.truth import ShotKind

BEAM = Beam(photon_energy_eV=4600)
DETECTOR = square_detector(24, pixel_size_m=0.004, distance_m=0.2)
FIRST = blobs([[20, 3, -8], [-14, 12, 2], [4, -9, 16]], [900, 500, 700], [3, 4, 2])
SECOND = blobs([[10, 10, 10], [-20, 0, 0]], [800, 800], [3, 3])
BLOBS = {FIRST: ([900, 500, 700], [3, 4, 2]), SECOND: ([800, 800], [3, 3])}


def larger(particle: Structure, s: float) -> Structure:
    """The particle s times as large, with the same density."""
    electrons, sigmas = BLOBS[particle]
    return blobs(particle.positions_A * s, np.array(electrons) * s**3, np.array(sigmas) * s)


def experiment(
    particles: Any = FIRST, beam: Beam = BEAM, detector: Any = DETECTOR, **settings: Any
) -> Experiment:
    return Experiment(
        particles, beam, detector, SimulateSettings(**{"accuracy": 1e-5, **settings}), device="cpu"
    )


def photons_of(amplitude: np.ndarray, detector: Any, fluence_r_e2: float, fluence: float = 1.0) -> np.ndarray:
    return np.asarray(np.abs(amplitude) ** 2 * detector.correction("x") * fluence_r_e2 * fluence)


def exact_photons(made: Experiment, shot: int, particle: Structure, detector: Any = DETECTOR) -> np.ndarray:
    """Photons of a shot with one particle, by the direct sum over its turned atoms."""
    truth = made.truth()
    turned = particle.rotated(truth.orientation[shot, 0])
    total = np.zeros(detector.n_pixels)
    for energy, weight in zip(truth.energy_eV[shot], truth.line_weight[shot], strict=True):
        amplitude = turned.amplitude(detector.q_inv_A(HC_EV_A / energy))
        total += weight * photons_of(amplitude, detector, made.fluence_r_e2, truth.fluence[shot])
    return total


def assert_equal_patterns(found: np.ndarray, exact: np.ndarray, tolerance: float = 2e-5) -> None:
    assert np.linalg.norm(found - exact) < tolerance * np.linalg.norm(exact)


def test_fluence_jitter_scales_whole_frames() -> None:
    made = experiment(frames=4, fluence_jitter=0.5)
    frames = made.expected(made.truth())
    for shot in range(4):
        assert_equal_patterns(frames[shot], exact_photons(made, shot, FIRST))
    assert np.ptp(made.truth().fluence) > 0.1


def test_a_spectrum_is_a_sum_over_its_lines() -> None:
    beam = Beam(photon_energy_eV=4600, spectrum=SaseSpectrum(0.05, 4))
    made = experiment(beam=beam, frames=3)
    frames = made.expected(made.truth())
    for shot in range(3):
        assert_equal_patterns(frames[shot], exact_photons(made, shot, FIRST))


@pytest.mark.parametrize("lines", [(0.97, 1.0, 1.05), (1.05, 1.1)])
def test_fixed_lines_scatter_at_their_own_energies(lines: tuple[float, ...]) -> None:
    beam = Beam(photon_energy_eV=4600, spectrum=Spectrum(lines, np.arange(1, len(lines) + 1)))
    made = experiment(beam=beam, frames=2)
    frames = made.expected(made.truth())
    share = np.arange(1, len(lines) + 1) / np.arange(1, len(lines) + 1).sum()
    for shot in range(2):
        turned, exact = FIRST.rotated(made.truth().orientation[shot, 0]), np.zeros(DETECTOR.n_pixels)
        for line, weight in zip(lines, share, strict=True):
            amplitude = turned.amplitude(DETECTOR.q_inv_A(BEAM.wavelength_A / line))
            exact += weight * photons_of(amplitude, DETECTOR, made.fluence_r_e2)
        assert_equal_patterns(frames[shot], exact)


def test_a_larger_particle_scatters_as_its_volume_squared_into_smaller_angles() -> None:
    made = experiment(frames=3, size_spread=0.2)
    truth, frames = made.truth(), made.expected(made.truth())
    assert np.ptp(truth.size) > 0.05
    for shot, s in enumerate(truth.size[:, 0]):
        assert_equal_patterns(frames[shot], exact_photons(made, shot, larger(FIRST, s)))


def test_a_beam_off_centre_equals_a_detector_moved_the_other_way() -> None:
    made = experiment(frames=3, centre_jitter_m=0.004)
    truth, frames = made.truth(), made.expected(made.truth())
    assert np.isfinite(frames).all()
    for shot, (x, y) in enumerate(truth.offset_m):
        moved = DETECTOR.moved((-x, -y, 0))
        assert_equal_patterns(frames[shot], exact_photons(made, shot, FIRST, moved))


def test_a_mixture_shows_each_conformation_in_its_share() -> None:
    made = experiment(Ensemble((FIRST, SECOND), np.array([0.25, 0.75])), frames=400)
    truth = made.truth()
    assert (truth.particle_class[:, 0] == 1).mean() == pytest.approx(0.75, abs=0.11)
    frames = made.expected(truth[:20])
    for shot in range(20):
        assert_equal_patterns(
            frames[shot], exact_photons(made, shot, (FIRST, SECOND)[truth.particle_class[shot, 0]])
        )


@pytest.mark.parametrize("interference", ["always", "never"])
@pytest.mark.parametrize("jitter", [0.0, 0.002])
def test_several_particles_add_as_fields_or_as_intensities(interference: str, jitter: float) -> None:
    made = experiment(
        [FIRST, SECOND], frames=6, multiple_fraction=0.7, most_particles=3, interference=interference,
        fluence_jitter=0.2, centre_jitter_m=jitter, size_spread=0.1,
    )  # fmt: skip
    truth, frames = made.truth(), made.expected(made.truth())
    assert (truth.kind == ShotKind.MULTIPLE).sum() >= 2
    for shot in range(6):
        detector = DETECTOR.moved((*-truth.offset_m[shot], 0))
        q = detector.q_inv_A(BEAM.wavelength_A)
        fields = []
        for m in np.flatnonzero(truth.particle_class[shot] >= 0):
            particle = larger((FIRST, SECOND)[truth.particle_class[shot, m]], truth.size[shot, m])
            particle = particle.rotated(truth.orientation[shot, m])
            fields.append(particle.translated(truth.position_A[shot, m]).amplitude(q))
        joined = [np.sum(fields, axis=0)] if interference == "always" else fields
        exact = sum(photons_of(field, detector, made.fluence_r_e2, truth.fluence[shot]) for field in joined)
        assert_equal_patterns(frames[shot], exact)


def test_particles_interfere_while_the_pixels_resolve_their_fringes() -> None:
    close, far = (
        experiment(frames=50, multiple_fraction=1.0, separation_A=separation) for separation in (60.0, 1e5)
    )
    assert close.truth_sampler.widest_coherent_A == far.truth_sampler.widest_coherent_A
    # A pixel spans 0.004 / 0.2 / wavelength, so half a fringe fills it at 67 A.
    assert close.truth_sampler.widest_coherent_A == pytest.approx(
        0.2 / 0.004 * BEAM.wavelength_A / 2, rel=0.05
    )
    assert not far.truth().interferes.any()
    truth = far.truth()
    alone = [to_matrix(truth.orientation[0, m]).T @ np.eye(3) / BEAM.wavelength_A for m in range(2)]
    transform = far.scattering.particles[0]
    summed = sum(transform.intensity(DETECTOR.ewald_vectors, matrix)[0] for matrix in alone)
    np.testing.assert_allclose(
        far.expected(truth[:1])[0], summed * DETECTOR.correction("x") * far.fluence_r_e2, rtol=1e-4
    )


def test_empty_shots_hold_background_only_and_junk_shots_hold_something_else() -> None:
    made = experiment(
        frames=60, empty_fraction=0.3, junk_fraction=0.4, background_photons=100, background_jitter=0.3
    )
    truth, frames = made.truth(), made.expected(made.truth())
    empty, junk = truth.kind == ShotKind.EMPTY, truth.kind == ShotKind.JUNK
    np.testing.assert_allclose(frames[empty].sum(1), 100 * truth.background[empty], rtol=1e-4)
    assert np.ptp(frames[empty] / truth.background[empty, None]) < 1e-5
    signal = frames[junk] - 100 / DETECTOR.n_pixels * truth.background[junk, None]
    assert (signal.sum(1) > 0).all()
    assert np.isfinite(signal).all()


def test_the_photons_asked_for_arrive() -> None:
    made = experiment([FIRST, SECOND], frames=400, photons_per_frame=200, detector=DETECTOR.with_mask(
        np.where(np.arange(DETECTOR.n_pixels) % 5 == 0, 2, 0)))  # fmt: skip
    assert made.photons_per_hit == pytest.approx(200)
    photons = np.concatenate([batch.photons for batch in made.batches(100)])
    assert photons.mean() == pytest.approx(200, abs=5 * photons.std() / np.sqrt(400))
    assert not np.concatenate([batch.dense() for batch in made.batches(100)])[:, ::5].any()


def test_a_particle_that_scatters_nothing_cannot_give_photons() -> None:
    with pytest.raises(OrienteerError, match="scatters nothing"):
        experiment(sphere(30, density=0.0), frames=2, photons_per_frame=200).patterns(0, 2)


def test_without_poisson_noise_the_frames_are_the_expected_photons() -> None:
    made = experiment(frames=3, poisson=False, photons_per_frame=50)
    patterns = made.patterns(0, 3)
    np.testing.assert_array_equal(patterns.frames, made.expected(made.truth()))
    assert patterns.frames.dtype == np.float32


FULL = {
    "frames": 30, "photons_per_frame": 300, "fluence_jitter": 0.3, "size_spread": 0.05,
    "centre_jitter_m": 0.001,
    "empty_fraction": 0.1, "junk_fraction": 0.1, "multiple_fraction": 0.3, "background_photons": 20,
    "background_jitter": 0.2, "seed": 5, "accuracy": 1e-3,
}  # fmt: skip


@pytest.mark.parametrize("more", [{}, {"readout": "integrating", "noise_adu": 0.2}])
def test_frames_do_not_depend_on_the_batch(more: dict[str, Any]) -> None:
    made = experiment(
        [FIRST, SECOND], Beam(photon_energy_eV=4600, spectrum=SaseSpectrum(0.01, 2)), **FULL, **more
    )
    whole = made.patterns(0, 30)
    for size in (4, 7, 30):
        batches = list(made.batches(size))
        np.testing.assert_array_equal(np.concatenate([b.dense() for b in batches]), whole.dense())
        np.testing.assert_array_equal(np.concatenate([b.event_id for b in batches]), whole.event_id)
        for name, column in whole.columns.items():
            np.testing.assert_array_equal(np.concatenate([b.columns[name] for b in batches]), column)


def test_frames_do_not_depend_on_threads_and_do_depend_on_the_seed() -> None:
    import numba

    made = experiment(**FULL)
    one = made.patterns(0, 20).dense()
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        np.testing.assert_array_equal(one, made.patterns(0, 20).dense())
    finally:
        numba.set_num_threads(before)
    other = (
        Experiment(FIRST, BEAM, DETECTOR, SimulateSettings(**FULL), seed=6, device="cpu")
        .patterns(0, 20)
        .dense()
    )
    assert (one != other).any(1).all()


def test_weak_frames_are_lists_of_photons_and_bright_ones_are_dense() -> None:
    assert experiment(frames=2, photons_per_frame=50).patterns(0, 2).is_sparse
    assert not experiment(frames=2, photons_per_frame=1e6).patterns(0, 2).is_sparse
    assert not experiment(frames=2, photons_per_frame=50, readout="integrating").patterns(0, 2).is_sparse


def test_an_integrating_detector_shows_photons_or_raw_signal_with_its_gain() -> None:
    common = {"frames": 4, "photons_per_frame": 1e5, "readout": "integrating", "gain_adu": 50.0,
              "gain_thresholds_photons": (20.0, 500.0), "gain_ratios": (0.1, 0.01)}  # fmt: skip
    counts = experiment(frames=4, photons_per_frame=1e5).patterns(0, 4).dense()
    calibrated = experiment(**common).patterns(0, 4)
    raw = experiment(**common, calibrated=False).patterns(0, 4)
    assert "gain_stage" not in calibrated.columns
    np.testing.assert_allclose(calibrated.dense(), counts, rtol=0.05, atol=1.01)
    stage = raw.columns["gain_stage"]
    assert set(np.unique(stage)) == {0, 1, 2}
    np.testing.assert_array_equal(stage, (counts > 20).astype(int) + (counts > 500))
    made = experiment(**common)
    assert "frame_mask" not in made.column_names
    np.testing.assert_allclose(made.response.calibrate(raw.dense(), stage), calibrated.dense())


@pytest.mark.parametrize("calibrated", [True, False])
def test_saturated_values_are_masked_in_their_frame_alone(calibrated: bool) -> None:
    made = experiment(frames=4, photons_per_frame=1e5, readout="integrating", saturation_photons=300.0,
                      fluence_jitter=0.5, calibrated=calibrated)  # fmt: skip
    counts = experiment(frames=4, photons_per_frame=1e5, fluence_jitter=0.5).patterns(0, 4).dense()
    patterns = made.patterns(0, 4)
    mask = patterns.columns["frame_mask"]
    assert mask.dtype == np.uint8
    np.testing.assert_array_equal(mask, np.where(counts >= 300, PixelUse.NEVER, 0))
    assert 0 < (mask > 0).any(0).mean() < 1
    assert patterns.dense().max() == 300
    # The column is there when nothing saturates too, as every batch of a file has the same columns.
    dark = experiment(frames=4, photons_per_frame=10, readout="integrating", saturation_photons=300.0)
    assert not dark.patterns(0, 4).columns["frame_mask"].any()


def test_measured_fluences_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "fluence.txt"
    path.write_text("1\n3\n")
    made = experiment(frames=50, fluence_file=str(path))
    assert set(made.truth().fluence) == {0.5, 1.5}
    path.write_text("bright\n")
    with pytest.raises(FileError, match=r"fluence\.txt"):
        experiment(frames=50, fluence_file=str(path))


def test_an_experiment_without_pixels_is_refused() -> None:
    with pytest.raises(OrienteerError, match="masked"):
        experiment(detector=DETECTOR.with_mask(np.full(DETECTOR.n_pixels, 2)))


def test_the_public_function_gives_patterns_with_their_truth() -> None:
    settings = SimulateSettings(frames=5, batch=2, photons_per_frame=40)
    batches = list(simulate(sphere(30), BEAM, DETECTOR, settings, seed=3, device="cpu"))
    assert [len(batch) for batch in batches] == [2, 2, 1]
    for name in ("wavelength_A", "truth_orientation", "truth_fluence", "truth_class", "truth_kind",
                 "truth_offset_m", "truth_size", "truth_energy_eV"):  # fmt: skip
        assert name in batches[0].columns
    given = simulate(FIRST, BEAM, DETECTOR, settings, orientations=random_uniform(5, seed=1), device="cpu")
    found = next(iter(given)).columns["truth_orientation"]
    np.testing.assert_allclose(found, random_uniform(5, seed=1)[:2])


@pytest.mark.parametrize("seed", [-5, 1.5, "seven", 2**64])
def test_a_seed_that_is_no_seed_is_refused(seed: Any) -> None:
    with pytest.raises(OrienteerError, match="seed"):
        Experiment(FIRST, BEAM, DETECTOR, seed=seed, device="cpu")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("orientations", [[1, 0, 0]]), ("orientations", [[0, 0, 0, 0]]), ("orientations", "up"),
        ("orientations", [[1, 0, 0, np.nan]]), ("orientations", np.zeros((0, 4))),
        ("fluences", ["bright"]), ("fluences", [[1.0, 2.0]]), ("background", "dark"), ("background", [1.0]),
        ("particles", "3iyf.pdb"), ("particles", [FIRST, 7]), ("particles", []),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_in_words(name: str, value: Any) -> None:
    arguments = {"particles": FIRST, "beam": BEAM, "detector": DETECTOR, "device": "cpu", name: value}
    with pytest.raises(OrienteerError, match=name.rstrip("s").replace("orientation", "[oO]rientation")):
        Experiment(**arguments)


@pytest.mark.gpu
@pytest.mark.parametrize("more", [{}, {"readout": "integrating", "noise_adu": 0.2}])
def test_cpu_and_gpu_make_the_same_experiment(more: dict[str, Any]) -> None:
    settings = SimulateSettings(**FULL, **more)
    beam = Beam(photon_energy_eV=4600, spectrum=SaseSpectrum(0.01, 2))
    on_cpu, on_gpu = (
        Experiment([FIRST, SECOND], beam, DETECTOR, settings, device=device) for device in ("cpu", "cuda")
    )
    truth = on_cpu.truth()
    assert_equal_patterns(on_gpu.expected(truth).get(), on_cpu.expected(truth), 1e-5)
    cpu, gpu = on_cpu.patterns(0, 30), on_gpu.patterns(0, 30).to("cpu")
    np.testing.assert_array_equal(cpu.columns["truth_orientation"], gpu.columns["truth_orientation"])
    if not more:
        # A rounding of the mean moves a count only where it decides, which is rare.
        assert (cpu.dense() != gpu.dense()).mean() < 1e-4
