"""Single particles, pairs and junk of a simulated experiment, told apart by hits alone."""

import numpy as np
import pytest
from numpy.typing import NDArray

from orienteer.detector.beam import Beam
from orienteer.detector.square import square_detector
from orienteer.hits.analysis import HitAnalysis
from orienteer.hits.kinds import HitKind
from orienteer.hits.settings import HitSettings
from orienteer.particle.named_bodies import named_body
from orienteer.simulation.experiment import Experiment
from orienteer.simulation.settings import SimulateSettings
from orienteer.simulation.truth import ShotKind
from orienteer.source.patterns import Patterns

BEAM = Beam(photon_energy_eV=4600)
DETECTOR = square_detector(64, pixel_size_m=0.00125, distance_m=0.2)
N, PHOTONS = 1500, 500.0
FOUND = 6.0  # standard deviations of the background from which a shot is a hit


class Stream:
    """Hits without any truth in their columns, beside the truth."""

    def __init__(self, **settings: float) -> None:
        particle = named_body("virus", 150.0, 0.44, 0.6, 12, 1)
        experiment = Experiment(
            particle, BEAM, DETECTOR, SimulateSettings(
                frames=N, photons_per_frame=PHOTONS, background_photons=PHOTONS, fluence_jitter=0.3,
                size_spread=0.03, seed=7, **settings,
            ), device="cpu",
        )  # fmt: skip
        shots = experiment.read()
        self.background = np.asarray(experiment.background, np.float64)
        photons = np.asarray(shots.photons) - self.background.sum()
        is_hit = photons > FOUND * np.sqrt(self.background.sum())
        self.hits = Patterns(shots.frames[is_hit], shots.event_id[is_hit])
        self.truth = np.asarray(shots.columns["truth_kind"])[is_hit]


@pytest.fixture(scope="module")
def stream() -> Stream:
    return Stream(junk_fraction=0.15, multiple_fraction=0.15)


@pytest.fixture(scope="module")
def looked_at(stream: Stream) -> tuple[HitAnalysis, NDArray[np.uint8]]:
    """An analysis that has seen all hits, and their kinds."""
    batch = 500
    analysis = HitAnalysis(HitSettings(), DETECTOR, BEAM.wavelength_A)
    kinds = [
        analysis.look(stream.hits[first : first + batch], stream.background)["kind"]
        for first in range(0, len(stream.hits), batch)
    ]
    return analysis, np.concatenate(kinds)


def test_single_hits_are_found_precisely_and_nearly_all(
    stream: Stream, looked_at: tuple[HitAnalysis, NDArray[np.uint8]]
) -> None:
    kind = looked_at[1]
    later = np.arange(len(kind)) >= 250  # when the particle is known from some hundred hits
    single, true = (kind == HitKind.SINGLE)[later], (stream.truth == ShotKind.HIT)[later]
    assert true[single].mean() > 0.98
    assert single[true].mean() > 0.95
    pairs = kind[later & (stream.truth == ShotKind.MULTIPLE)]
    assert (pairs == HitKind.MULTIPLE).mean() > 0.85


def test_the_size_learned_is_that_of_the_particle(looked_at: tuple[HitAnalysis, NDArray[np.uint8]]) -> None:
    # A sphere as large as an icosahedron whose corners lie 150 A apart: between its corners and its faces.
    assert 119 < looked_at[0].size_A < 150


def test_half_of_all_shots_without_a_particle_are_never_taken_for_one(stream: Stream) -> None:
    draw = np.random.default_rng(8)
    empty = draw.poisson(stream.background, (len(stream.hits), DETECTOR.n_pixels)).astype(np.uint16)
    both = np.concatenate([np.asarray(stream.hits.dense(), np.uint16), empty])
    is_empty = np.repeat([False, True], len(stream.hits))
    order = draw.permutation(len(both))
    analysis = HitAnalysis(HitSettings(), DETECTOR, BEAM.wavelength_A)
    kind = analysis.look(Patterns(both[order]), stream.background)["kind"]
    assert (kind[is_empty[order]] == HitKind.SINGLE).mean() < 0.002
    single = kind[~is_empty[order]] == HitKind.SINGLE
    true = np.concatenate([stream.truth, stream.truth])[order][~is_empty[order]] == ShotKind.HIT
    later = np.arange(len(single)) > 200
    assert single[later & true].mean() > 0.95


def test_too_few_hits_say_nothing(stream: Stream) -> None:
    analysis = HitAnalysis(HitSettings(), DETECTOR, BEAM.wavelength_A)
    columns = analysis.look(stream.hits[:50], stream.background)
    assert (columns["kind"] == HitKind.UNSURE).all()
    assert (columns["size_A"] > 0).all()


def test_a_particle_cannot_be_learned_from_frames_without_light() -> None:
    draw = np.random.default_rng(9)
    background = np.full(DETECTOR.n_pixels, 0.1)
    analysis = HitAnalysis(HitSettings(), DETECTOR, BEAM.wavelength_A)
    kind = analysis.look(Patterns(draw.poisson(background, (400, len(background)))), background)["kind"]
    assert (kind == HitKind.UNSURE).all()
    assert analysis.selection is None
