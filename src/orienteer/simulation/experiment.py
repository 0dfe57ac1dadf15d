"""Experiment: particles, beam, detector and their imperfections, made into patterns batch by batch."""

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orienteer.compute.arrays import (
    Array,
    DeviceName,
    choose_device,
    namespace_of_device,
    to_device,
    to_numpy,
)
from orienteer.detector.beam import HC_EV_A, Beam
from orienteer.detector.detector import Detector
from orienteer.detector.masks import PixelUse
from orienteer.errors import FileError, OrienteerError
from orienteer.fourier.interpolate import patch_order
from orienteer.fourier.sampled_transform import SampledTransform
from orienteer.particle.base import Particle
from orienteer.particle.conformations import Ensemble
from orienteer.simulation.background import checked_background, flat_background, read_background
from orienteer.simulation.centre_offset import OffsetGeometry
from orienteer.simulation.detector_response import DetectorResponse, dead_pixels
from orienteer.simulation.junk import junk_particles
from orienteer.simulation.photons import draw_photons, list_photons
from orienteer.simulation.pilot import mean_photons_of_a_hit, pilot_shots
from orienteer.simulation.scattering import Scattering
from orienteer.simulation.settings import SimulateSettings
from orienteer.simulation.truth import Truth
from orienteer.simulation.truth_sampler import TruthSampler
from orienteer.source.patterns import Patterns

CLASSICAL_ELECTRON_RADIUS_A = 2.8179403e-5
_N_JUNK = 4
# Bytes of a batch of dense frames: small enough for a laptop, large enough to keep a device busy.
_BATCH_BYTES = {"cpu": 64 * 2**20, "cuda": 512 * 2**20}


class Experiment:
    """A simulated single-particle experiment.

    Making one prepares the transforms (seconds); after that a frame costs about a millisecond.  Frame i is
    the same in any batch, with any number of threads, and, but for the last digit of its intensities, on any
    device.  Anomalous terms are those of the mean photon energy.

    particles : one particle, an :class:`Ensemble`, or several particles in equal shares.
    settings : every imperfection; ideal by default.
    seed : instead of the seed of the settings.
    orientations : (K, 4) quaternions taken in turn, instead of uniformly random ones.
    fluences : measured fluences to draw from, scaled to mean 1.
    background : (P,) expected background photons, added to that of the settings.

    detector : the detector with its dead pixels masked.  Pixels masked "never" hold no photons.
    """

    def __init__(
        self, particles: Particle | Ensemble | Sequence[Particle], beam: Beam, detector: Detector,
        settings: SimulateSettings | None = None, *, seed: int | None = None, device: DeviceName = "auto",
        orientations: ArrayLike | None = None, fluences: ArrayLike | None = None,
        background: ArrayLike | None = None,
    ) -> None:  # fmt: skip
        settings = SimulateSettings() if settings is None else settings
        self.settings = settings if seed is None else settings.model_copy(update={"seed": seed})
        self.beam, self.device = beam, choose_device(device)
        ensemble = _as_ensemble(particles)
        self.detector = self._with_dead_pixels(detector)
        self._used = np.flatnonzero(
            (self.detector.mask < PixelUse.NEVER) & (self.detector.solid_angle_sr > 0)
        )
        if len(self._used) == 0:
            raise OrienteerError("every pixel of the detector is masked; there is nothing to simulate.")
        if fluences is None and self.settings.fluence_file:
            fluences = _read_fluences(self.settings.fluence_file)
        self.truth_sampler = TruthSampler(
            self.settings, beam, ensemble.weights, [p.radius_A for p in ensemble.particles],
            _N_JUNK, orientations, fluences, self._widest_coherent_A(),
        )  # fmt: skip
        self.background = self._background(background)
        self.scattering = self._prepare(ensemble)
        self.response = DetectorResponse(
            self.settings.gain_adu, self.settings.noise_adu, self.settings.gain_thresholds_photons,
            self.settings.gain_ratios, self.settings.saturation_photons or np.inf,
        )  # fmt: skip

    @cached_property
    def photons_per_fluence_r_e2(self) -> float:
        """Mean photons of a single hit on used pixels for a fluence x r_e^2 of 1.

        The mean is over everything that differs from hit to hit: class, orientation, size, beam centre and
        spectrum, each as it is drawn.
        """
        return mean_photons_of_a_hit(self.scattering, self.truth_sampler)

    @cached_property
    def fluence_r_e2(self) -> float:
        """Mean fluence x r_e^2: from the beam, or from the photons per frame that were asked for."""
        if self.settings.photons_per_frame > 0:
            if not self.photons_per_fluence_r_e2 > 0:
                raise OrienteerError(
                    "the particle scatters nothing, so no fluence gives the photons asked for."
                )
            return self.settings.photons_per_frame / self.photons_per_fluence_r_e2
        return self.beam.fluence_inv_A2 * CLASSICAL_ELECTRON_RADIUS_A**2

    @property
    def photons_per_hit(self) -> float:
        """Mean photons of a single hit on used pixels, without background."""
        return self.photons_per_fluence_r_e2 * self.fluence_r_e2

    @cached_property
    def is_sparse(self) -> bool:
        """Whether frames come as lists of photons: counts, and fewer than 4 pixels in 10 lit."""
        if self.settings.readout == "integrating" or not self.settings.poisson:
            return False
        shots, weight = pilot_shots(self.truth_sampler, 0, 0, 8)
        background = to_numpy(self.background)[self._used]
        unlit = np.exp(-to_numpy(self.scattering.signal(shots, self.fluence_r_e2)) - background).mean(1)
        return bool(1 - np.average(unlit, weights=weight) < 0.4)

    def truth(self, first: int = 0, last: int | None = None) -> Truth:
        """What happens in frames first to last - 1."""
        return self.truth_sampler.shots(first, self.settings.frames if last is None else last)

    def expected(self, truth: Truth) -> Array:
        """Noise-free photons (N, P) float32 of signal and background, on the device of the experiment."""
        xp = namespace_of_device(self.device)
        signal = self.scattering.signal(truth, self.fluence_r_e2)
        if len(self._used) < self.detector.n_pixels:
            frames = xp.zeros((len(truth), self.detector.n_pixels), np.float32)
            frames[:, to_device(self._used, self.device)] = signal
        else:
            frames = signal
        if self.has_background:
            frames += self.background * to_device(truth.background[:, None].astype(np.float32), self.device)
        return frames

    def patterns(self, first: int, last: int) -> Patterns:
        """Frames first to last - 1 with their truth, on the device of the experiment."""
        truth = self.truth(first, last)
        expected, columns = self.expected(truth), dict(truth.columns())
        event_id = to_device(truth.event_id, self.device)
        frames: Array = (
            draw_photons(expected, self.settings.seed, event_id) if self.settings.poisson else expected
        )
        if self.settings.readout == "integrating":
            frames, stage = self.response.read_out(frames, self.settings.seed, event_id)
            if self.settings.calibrated:
                frames = self.response.calibrate(frames, stage)
            else:
                columns["gain_stage"] = stage
            # A pixel that is not read has no value at all, which a dark pixel has.
            never = np.flatnonzero(self.detector.mask == PixelUse.NEVER)
            frames[:, to_device(never, self.device)] = np.nan
        elif self.is_sparse:
            frames = list_photons(frames)
        return Patterns(frames, truth.event_id, columns)

    def batches(self, size: int | None = None, first: int = 0, last: int | None = None) -> Iterator[Patterns]:
        """All frames in order, ``size`` at a time, in memory that does not grow with their number."""
        size = size or self.settings.batch or self.batch_size
        last = self.settings.frames if last is None else last
        for start in range(first, last, size):
            yield self.patterns(start, min(start + size, last))

    @property
    def batch_size(self) -> int:
        """Frames of a batch when none is given."""
        return max(1, _BATCH_BYTES[self.device] // (8 * self.detector.n_pixels))

    @cached_property
    def has_background(self) -> bool:
        """Whether any pixel has background."""
        return bool(to_numpy(self.background).any())

    def _pixel_order(self) -> Array | None:
        order = patch_order(self._used, self.detector.frame_shape) if self.device == "cuda" else None
        return None if order is None else to_device(order, self.device)

    def _widest_coherent_A(self) -> float:
        """Separation up to which the particles of a shot interfere.

        The pulse is coherent across all of them, but a pixel averages fringes narrower than itself.
        """
        pixel_q = np.sqrt(np.median(self.detector.solid_angle_sr[self._used])) / self.beam.wavelength_A
        return float({"always": np.inf, "never": -1.0, "auto": 0.5 / pixel_q}[self.settings.interference])

    def _with_dead_pixels(self, detector: Detector) -> Detector:
        settings = self.settings
        dead = dead_pixels(detector, settings.dead_pixel_fraction, settings.dead_panels, settings.seed)
        return detector.with_mask(np.where(dead, PixelUse.NEVER, detector.mask)) if dead.any() else detector

    def _background(self, given: ArrayLike | None) -> Array:
        settings = self.settings
        total = np.zeros(self.detector.n_pixels, np.float32)
        if settings.background_photons > 0:
            total += flat_background(self.detector, settings.background_photons, settings.background_slope)
        if settings.background_file:
            total += read_background(settings.background_file, self.detector)
        if given is not None:
            total += checked_background(given, self.detector)
        return to_device(total, self.device)

    def _prepare(self, ensemble: Ensemble) -> Scattering:
        sampler, settings = self.truth_sampler, self.settings
        points = self.detector.ewald_vectors[self._used]
        largest = np.linalg.norm(points, axis=1).max()
        offset_geometry = None
        if settings.centre_jitter_m > 0:
            offset_geometry = OffsetGeometry(self.detector, self._used, self.beam.polarisation, self.device)
            corners = sampler.largest_offset_m * np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]])
            for corner in corners:
                ewald = to_numpy(offset_geometry.at(corner[None])[0])
                largest = max(largest, np.linalg.norm(ewald, axis=-1).max())
        q_max = float(largest * sampler.largest_size * sampler.energy_limits_eV[1] / HC_EV_A * (1 + 1e-9))
        if q_max == 0:
            raise OrienteerError("all used pixels lie in the direct beam; there is nothing to simulate.")

        def sample(particle: Particle, error: float) -> SampledTransform:
            return SampledTransform.from_particle(
                particle, q_max, self.beam.photon_energy_eV, error=error, device=self.device
            )

        junk = junk_particles(_N_JUNK, ensemble.radius_A, settings.seed) if settings.junk_fraction > 0 else ()
        correction = self.detector.correction(self.beam.polarisation)[self._used].astype(np.float32)
        return Scattering(
            tuple(sample(particle, settings.accuracy) for particle in ensemble.particles),
            tuple(sample(lump, max(settings.accuracy, 1e-3)) for lump in junk),
            to_device(points, self.device), to_device(correction, self.device), offset_geometry,
            self._pixel_order(), self.device,
        )  # fmt: skip


def simulate(
    particles: Particle | Ensemble | Sequence[Particle], beam: Beam, detector: Detector,
    settings: SimulateSettings | None = None, *, seed: int | None = None, device: DeviceName = "auto",
    orientations: ArrayLike | None = None, fluences: ArrayLike | None = None,
    background: ArrayLike | None = None,
) -> Iterator[Patterns]:  # fmt: skip
    """Batches of simulated patterns with their truth; see :class:`Experiment` for the arguments.

    >>> from orienteer.detector.square import square_detector
    >>> from orienteer.particle.bodies import sphere
    >>> beam = Beam(photon_energy_eV=4600)
    >>> detector = square_detector(16, pixel_size_m=0.005, distance_m=0.2)
    >>> settings = SimulateSettings(frames=5, photons_per_frame=100)
    >>> [len(batch) for batch in simulate(sphere(30), beam, detector, settings, seed=1)]
    [5]
    """
    experiment = Experiment(
        particles, beam, detector, settings, seed=seed, device=device,
        orientations=orientations, fluences=fluences, background=background,
    )  # fmt: skip
    return experiment.batches()


def _as_ensemble(particles: Particle | Ensemble | Sequence[Particle]) -> Ensemble:
    if isinstance(particles, Ensemble):
        return particles
    return Ensemble(tuple(particles) if isinstance(particles, Sequence) else (particles,))


def _read_fluences(path: str) -> NDArray[np.float64]:
    try:
        return np.loadtxt(path, ndmin=1, dtype=np.float64).reshape(-1)
    except (OSError, ValueError) as error:
        raise FileError(
            path, f"is no list of fluences ({error}).", "One number per line is expected."
        ) from error
