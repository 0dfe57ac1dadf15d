"""Streams of random numbers: apart from one another, from other seeds and from plain generators."""

import itertools

import numpy as np
import pytest

from orienteer.detector.beam import Beam
from orienteer.errors import OrienteerError
from orienteer.orientation.quaternion import random_uniform
from orienteer.simulation.junk import junk_particles
from orienteer.simulation.photons import generator_key
from orienteer.simulation.random_streams import STREAMS, first_event_id, random_stream
from orienteer.simulation.settings import SimulateSettings
from orienteer.simulation.truth_sampler import TruthSampler

SEEDS = (0, 1, 7, 2**32 - 1, 7 + 2**32, 7 + 2**33)


def test_no_two_streams_blocks_or_seeds_share_numbers() -> None:
    first = [
        random_stream(seed, stream, block).random()
        for seed, stream, block in itertools.product(SEEDS, STREAMS, (0, 1, 2))
    ]
    plain = [np.random.default_rng(seed).random() for seed in SEEDS]
    assert len(set(first + plain)) == len(first) + len(plain)


@pytest.mark.parametrize("seed", SEEDS)
def test_simulated_orientations_are_not_those_that_a_user_draws_with_the_same_seed(seed: int) -> None:
    beam = Beam(photon_energy_eV=4600)
    simulated = TruthSampler(SimulateSettings(seed=seed), beam, [1.0], [50.0]).shots(0, 100).orientation[:, 0]
    assert not np.isclose(np.abs((simulated * random_uniform(100, seed)).sum(1)), 1).any()


def test_seeds_that_share_their_low_bits_differ() -> None:
    beam = Beam(photon_energy_eV=4600)
    low, high = (
        TruthSampler(SimulateSettings(seed=seed, fluence_jitter=0.5), beam, [1.0], [50.0]).shots(0, 50)
        for seed in (7, 7 + 2**32)
    )
    assert not np.isclose(low.orientation, high.orientation).all(-1).any()
    assert not np.isclose(low.fluence, high.fluence).any()
    assert generator_key(7) != generator_key(7 + 2**32)
    assert junk_particles(1, 100.0, 7)[0].radius_A != junk_particles(1, 100.0, 7 + 2**32)[0].radius_A


def test_runs_of_different_seeds_have_their_own_event_ids() -> None:
    starts = {first_event_id(seed) for seed in range(1000)}
    assert len(starts) == 1000
    assert all(start % 2**40 == 0 and start < 2**64 for start in starts)


@pytest.mark.parametrize("seed", [-5, 1.5, "seven"])
def test_a_seed_that_is_no_whole_number_is_refused(seed: object) -> None:
    with pytest.raises(OrienteerError, match="seed"):
        random_stream(seed, "orientation")  # type: ignore[arg-type]
