"""Pilot shots: single hits spread evenly over everything that varies, to know means before the first frame.

Orientation, class, size and offset of a pilot shot come from a sequence that fills the cube of uniform
numbers evenly (Richtmyer's, with steps of the square roots of primes), so that means need fewer shots than
random draws would.  Several replicates use the sequence with different random shifts; the spread of their
means gives the uncertainty of the overall mean.
"""

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import to_numpy
from orienteer.simulation.random_streams import random_stream
from orienteer.simulation.scattering import Scattering
from orienteer.simulation.truth import ShotKind, Truth
from orienteer.simulation.truth_sampler import TruthSampler

REPLICATES = 8
_TOLERANCE = 0.003
_MOST_SHOTS = 512  # of a replicate; fewer if all replicates together would exceed _MOST_POINTS
_MOST_POINTS = 2**28
_STEPS = np.sqrt([2, 3, 5, 7, 11, 13, 17])  # along the axes: orientation 3, class 1, size 1, offset 2
# Photons grow with the size to a power between 4 and 6: large sizes are drawn more often, and weighted less.
_SIZE_POWER = 5.0
_PIXELS_AT_A_TIME = 2**23


def mean_photons_of_a_hit(scattering: Scattering, sampler: TruthSampler) -> float:
    """Mean photons of a single hit in all used pixels at a fluence x r_e^2 of 1, to 1 % or better."""
    points_of_a_shot = len(scattering.points) * sampler.beam.n_lines
    most = min(_MOST_SHOTS, _MOST_POINTS // (REPLICATES * points_of_a_shot))
    total, done = np.zeros(REPLICATES), 0
    while True:
        more = max(16, done)
        for replicate in range(REPLICATES):
            total[replicate] += _weighted_photons(scattering, sampler, replicate, done, done + more)
        done += more
        mean = total / done
        uncertainty = mean.std(ddof=1) / np.sqrt(REPLICATES)
        if uncertainty <= _TOLERANCE * mean.mean() or done >= most:
            return float(mean.mean())


def pilot_shots(
    sampler: TruthSampler, replicate: int, first: int, last: int
) -> tuple[Truth, NDArray[np.float64]]:
    """Shots first to last - 1 of a replicate, and the weight of each in a mean (1 on average)."""
    from scipy.special import ndtri

    n = last - first
    draw = random_stream(sampler.settings.seed, "pilot", replicate)
    uniform = (draw.random(len(_STEPS)) + np.outer(np.arange(first, last), _STEPS)) % 1.0
    normal = ndtri(np.clip(uniform[:, 4:], 1e-12, 1 - 1e-12))
    tilt = _SIZE_POWER * sampler.log_size_sigma
    normal[:, 0] += tilt
    weight = np.exp(tilt**2 / 2 - tilt * normal[:, 0])
    particle_class = np.searchsorted(np.cumsum(sampler.class_weights), uniform[:, 3], side="right")
    particle_class = np.minimum(particle_class, len(sampler.class_weights) - 1)
    spectrum = random_stream(sampler.settings.seed, "pilot", REPLICATES + REPLICATES * first + replicate)
    energy, line_weight = sampler.spectra(n, spectrum)
    truth = Truth(
        event_id=np.arange(n, dtype=np.uint64),
        kind=np.full(n, ShotKind.HIT, np.uint8),
        particle_class=particle_class[:, None].astype(np.int32),
        orientation=_orientations(sampler, uniform[:, :3])[:, None],
        position_A=np.zeros((n, 1, 3)),
        size=sampler.size_factor(normal[:, :1]),
        interferes=np.zeros(n, bool),
        fluence=np.ones(n),
        offset_m=sampler.offset_m(normal[:, 1:]),
        energy_eV=energy,
        line_weight=line_weight,
        background=np.ones(n),
    )
    return truth, weight


def _weighted_photons(
    scattering: Scattering, sampler: TruthSampler, replicate: int, first: int, last: int
) -> float:
    truth, weight = pilot_shots(sampler, replicate, first, last)
    chunk, total = max(1, _PIXELS_AT_A_TIME // len(scattering.points)), 0.0
    for start in range(0, len(truth), chunk):
        shots = slice(start, start + chunk)
        signal = scattering.signal(truth[shots], 1.0)
        total += float(weight[shots] @ to_numpy(signal.sum(1, dtype=np.float64)))
    return total


def _orientations(sampler: TruthSampler, uniform: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, 4) quaternions: the given ones in equal shares, or uniform ones (Shoemake 1992)."""
    if sampler.orientations is not None:
        return np.asarray(sampler.orientations)[(uniform[:, 0] * len(sampler.orientations)).astype(np.int64)]
    near, far = np.sqrt(1 - uniform[:, 0]), np.sqrt(uniform[:, 0])
    a, b = 2 * np.pi * uniform[:, 1], 2 * np.pi * uniform[:, 2]
    return np.stack([near * np.sin(a), near * np.cos(a), far * np.sin(b), far * np.cos(b)], axis=1)
