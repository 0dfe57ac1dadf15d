"""Prepare an experiment: compute the transforms of its particles once for all pixels and all shots."""

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import DeviceName, to_device, to_numpy
from orienteer.detector.beam import HC_EV_A, Beam
from orienteer.detector.detector import Detector
from orienteer.errors import OrienteerError
from orienteer.fourier.interpolate import patch_order
from orienteer.fourier.sampled_transform import SampledTransform
from orienteer.particle.base import Particle
from orienteer.particle.conformations import Ensemble
from orienteer.simulation.centre_offset import OffsetGeometry
from orienteer.simulation.junk import junk_particles
from orienteer.simulation.scattering import Scattering
from orienteer.simulation.truth_sampler import TruthSampler


def prepare_scattering(
    ensemble: Ensemble, detector: Detector, used: NDArray[np.int64], sampler: TruthSampler, device: DeviceName
) -> Scattering:
    """The scattering of all shots, with transforms that reach the largest q of any shot.

    used : (P,) indices of the pixels that are simulated.
    """
    beam, settings = sampler.beam, sampler.settings
    points = detector.ewald_vectors[used]
    largest = np.linalg.norm(points, axis=1).max()
    offset_geometry = None
    if settings.centre_jitter_m > 0:
        offset_geometry = OffsetGeometry(detector, used, beam.polarisation, device)
        for corner in sampler.largest_offset_m * np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]]):
            ewald = to_numpy(offset_geometry.at(corner[None])[0])
            largest = max(largest, np.linalg.norm(ewald, axis=-1).max())
    q_max = float(largest * sampler.largest_size * sampler.energy_limits_eV[1] / HC_EV_A * (1 + 1e-9))
    if q_max == 0:
        raise OrienteerError(
            "all used pixels lie in the direct beam; there is nothing to simulate.",
            "Mask fewer pixels, or give a larger detector.",
        )

    def sample(particle: Particle, error: float) -> SampledTransform:
        return SampledTransform.from_particle(
            particle, q_max, beam.photon_energy_eV, error=error, device=device
        )

    n_junk = sampler.n_junk if settings.junk_fraction > 0 else 0
    order = patch_order(used, detector.frame_shape) if device == "cuda" else None
    correction = detector.correction(beam.polarisation)[used].astype(np.float32)
    return Scattering(
        particles=tuple(sample(particle, settings.accuracy) for particle in ensemble.particles),
        junk=tuple(
            sample(lump, max(settings.accuracy, 1e-3))
            for lump in junk_particles(n_junk, ensemble.radius_A, settings.seed)
        ),
        points=to_device(points, device),
        correction=to_device(correction, device),
        offset_geometry=offset_geometry,
        order=None if order is None else to_device(order, device),
        device=device,
    )


def widest_coherent_A(detector: Detector, used: NDArray[np.int64], beam: Beam, interference: str) -> float:
    """Separation in A up to which the fields of the particles of a shot are added, and not their intensities.

    The pulse is coherent across all particles, but a pixel averages over fringes narrower than itself.

    interference : "always", "never", or "auto": as long as fringes are at least two pixels wide.
    """
    pixel_q = np.sqrt(np.median(detector.solid_angle_sr[used])) / beam.wavelength_A
    return float({"always": np.inf, "never": -1.0, "auto": 0.5 / pixel_q}[interference])
