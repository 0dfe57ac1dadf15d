"""Experiment: turns particles, beam, detector and their imperfections into patterns, batch by batch."""

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import ValidationError

import orienteer
from orienteer.compute.arrays import (
    Array,
    DeviceName,
    choose_device,
    namespace_of_device,
    to_device,
    to_numpy,
)
from orienteer.compute.reading import read_head, reading
from orienteer.detector.beam import Beam
from orienteer.detector.detector import Detector
from orienteer.detector.masks import PixelUse
from orienteer.errors import OrienteerError, SettingsError
from orienteer.particle.base import Particle
from orienteer.particle.conformations import Ensemble
from orienteer.simulation.background import checked_background, flat_background, read_background
from orienteer.simulation.detector_response import DetectorResponse, dead_pixels
from orienteer.simulation.photons import draw_photons, list_photons
from orienteer.simulation.pilot import mean_photons_of_a_hit, pilot_shots
from orienteer.simulation.preparation import prepare_scattering, widest_coherent_A
from orienteer.simulation.settings import SimulateSettings
from orienteer.simulation.truth import Truth
from orienteer.simulation.truth_sampler import TruthSampler
from orienteer.source.finite_source import FiniteSource
from orienteer.source.patterns import FRAME_MASK, Patterns

CLASSICAL_ELECTRON_RADIUS_A = 2.8179403e-5
GAIN_STAGE = "gain_stage"
_N_JUNK = 4
# Bytes of a batch of dense frames: small enough for a laptop, large enough to keep a device busy.
_BATCH_BYTES = {"cpu": 64 * 2**20, "cuda": 512 * 2**20}


class Experiment(FiniteSource):
    """A simulated single-particle experiment: a source whose patterns are computed when they are read.

    Creating an experiment prepares the transforms (seconds); a frame then takes about a millisecond.  Frame i
    is the same in any batch, with any number of threads and, except for the last digit of its intensities, on
    any device.  Iterating gives batches in host memory; ``batches(device="cuda")`` leaves them on the GPU.
    Anomalous terms are those of the mean photon energy.

    particles : one particle, an :class:`Ensemble`, or several particles in equal shares.
    settings : number of frames and every imperfection; ideal by default.
    seed : instead of the seed of the settings.
    orientations : (K, 4) quaternions to use in turn, instead of uniformly random ones.
    fluences : measured fluences to draw from, scaled to mean 1.
    background : (P,) expected background photons, added to that of the settings.

    In ``detector`` and ``mask`` the dead pixels are masked "never".  Pixels masked "never" are not simulated:
    they hold no photons, or NaN from an integrating detector.  If such a detector can saturate, the column
    ``frame_mask`` marks each value that was cut off as "never", because the true signal is only known to be
    at least this large.

    >>> from orienteer.detector.square import square_detector
    >>> from orienteer.particle.bodies import sphere
    >>> detector = square_detector(16, pixel_size_m=0.005, distance_m=0.2)
    >>> experiment = Experiment(sphere(30), Beam(wavelength_A=2.0), detector, SimulateSettings(frames=5))
    >>> len(experiment), experiment.format, "truth_orientation" in experiment.column_names
    (5, 'simulation', True)
    """

    format = "simulation"

    def __init__(
        self, particles: Particle | Ensemble | Sequence[Particle], beam: Beam, detector: Detector,
        settings: SimulateSettings | None = None, *, seed: int | None = None, device: DeviceName = "auto",
        orientations: ArrayLike | None = None, fluences: ArrayLike | None = None,
        background: ArrayLike | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.settings = settings = _with_seed(SimulateSettings() if settings is None else settings, seed)
        self.beam, self.device = beam, choose_device(device)
        ensemble = _as_ensemble(particles)
        # Kept apart from ``detector``, which a user may replace later by another geometry.
        self._simulated = detector = _with_dead_pixels(detector, settings)
        self._used = np.flatnonzero((detector.mask < PixelUse.NEVER) & (detector.solid_angle_sr > 0))
        if len(self._used) == 0:
            raise OrienteerError(
                "every pixel of the detector is masked; there is nothing to simulate.",
                "Mask fewer pixels, or lower the number of dead pixels.",
            )
        if fluences is None and settings.fluence_file:
            fluences = _read_fluences(settings.fluence_file)
        self.truth_sampler = TruthSampler(
            settings, beam, ensemble.weights, [p.radius_A for p in ensemble.particles],
            _N_JUNK, orientations, fluences,
            widest_coherent_A(detector, self._used, beam, settings.interference),
        )  # fmt: skip
        self.background = self._background(background)
        self.scattering = prepare_scattering(ensemble, detector, self._used, self.truth_sampler, self.device)
        self.response = DetectorResponse(
            settings.gain_adu, settings.noise_adu, settings.gain_thresholds_photons,
            settings.gain_ratios, settings.saturation_photons or np.inf,
        )  # fmt: skip

        self.frame_shape, self.n_frames = detector.frame_shape, settings.frames
        self.polarisation = beam.polarisation
        self.attach(detector)
        self.stored_columns = (*self.truth(0, 0).columns(), *self._columns_of_pixels)
        self.metadata = {
            "creator": f"orienteer {orienteer.__version__}",
            "seed": settings.seed,
            "settings": f'{{"simulate": {settings.model_dump_json()}}}',
        }

    def __iter__(self) -> Iterator[Patterns]:
        return self.batches()

    @property
    def name(self) -> str:
        """Name of this source in messages."""
        return "simulation"

    @property
    def frames_per_batch(self) -> int:
        """Frames per batch if the caller does not choose."""
        return self.settings.batch or max(1, _BATCH_BYTES[self.device] // (8 * self.n_pixels))

    @cached_property
    def photons_per_fluence_r_e2(self) -> float:
        """Mean photons of a single hit on used pixels for a fluence x r_e^2 of 1.

        The mean is over everything that differs from hit to hit, with the distributions of the settings:
        class, orientation, size, beam centre and spectrum.
        """
        return mean_photons_of_a_hit(self.scattering, self.truth_sampler)

    @cached_property
    def fluence_r_e2(self) -> float:
        """Mean fluence x r_e^2: from the beam, or from the requested ``photons_per_frame``."""
        if self.settings.photons_per_frame > 0:
            if not self.photons_per_fluence_r_e2 > 0:
                raise OrienteerError(
                    "the particle scatters nothing, so no fluence gives the requested photons_per_frame.",
                    "Give another particle, or pixels closer to the beam.",
                )
            return self.settings.photons_per_frame / self.photons_per_fluence_r_e2
        return self.beam.fluence_inv_A2 * CLASSICAL_ELECTRON_RADIUS_A**2

    @property
    def photons_per_hit(self) -> float:
        """Mean photons of a single hit on used pixels, without background."""
        return self.photons_per_fluence_r_e2 * self.fluence_r_e2

    @cached_property
    def is_sparse(self) -> bool:  # type: ignore[override]  # computed only if it is needed
        """Whether frames come as lists of photons: for counts, if less than 40 % of the pixels are lit."""
        if self.settings.readout == "integrating" or not self.settings.poisson:
            return False
        shots, weight = pilot_shots(self.truth_sampler, 0, 0, 8)
        background = to_numpy(self.background)[self._used]
        unlit = np.exp(-to_numpy(self.scattering.signal(shots, self.fluence_r_e2)) - background).mean(1)
        return bool(1 - np.average(unlit, weights=weight) < 0.4)

    @cached_property
    def has_background(self) -> bool:
        """Whether any pixel has background."""
        return bool(to_numpy(self.background).any())

    def truth(self, first: int = 0, last: int | None = None) -> Truth:
        """The truth of frames first to last - 1."""
        return self.truth_sampler.shots(first, self.settings.frames if last is None else last)

    def expected(self, truth: Truth) -> Array:
        """Noise-free photons (N, P) float32 of signal and background, on the device of the experiment."""
        xp = namespace_of_device(self.device)
        signal = self.scattering.signal(truth, self.fluence_r_e2)
        if len(self._used) < self.n_pixels:
            frames = xp.zeros((len(truth), self.n_pixels), np.float32)
            frames[:, to_device(self._used, self.device)] = signal
        else:
            frames = signal
        if self.has_background:
            frames += self.background * to_device(truth.background[:, None].astype(np.float32), self.device)
        return frames

    def patterns(self, first: int, last: int) -> Patterns:
        """Frames first to last - 1 with their truth, on the device of the experiment."""
        truth, settings = self.truth(first, last), self.settings
        frames, columns = self.expected(truth), dict(truth.columns())
        event_id = to_device(truth.event_id, self.device)
        if settings.poisson:
            frames = draw_photons(frames, settings.seed, event_id)
        if settings.readout == "integrating":
            shown = self.response.read_out(frames, settings.seed, event_id)
            frames = self.response.calibrate(shown.adu, shown.stage) if settings.calibrated else shown.adu
            # NaN, because a pixel that is never used has no value, unlike a dark pixel.
            never = np.flatnonzero(self._simulated.mask == PixelUse.NEVER)
            frames[:, to_device(never, self.device)] = np.nan
            of_pixels = {GAIN_STAGE: shown.stage, FRAME_MASK: shown.saturated * np.uint8(PixelUse.NEVER)}
            columns |= {name: of_pixels[name] for name in self._columns_of_pixels}
        elif self.is_sparse:
            frames = list_photons(frames)
        return Patterns(frames, truth.event_id, columns)

    # The interface of FiniteSource.

    def _patterns(self, rows: slice) -> Patterns:
        if self.given.frame_masks:
            return super()._patterns(rows)
        return self.patterns(rows.start, rows.stop)

    def _read_frames(self, rows: slice) -> Array:
        return self.patterns(rows.start, rows.stop).to("cpu").frames

    def _read_event_ids(self, rows: slice) -> Array:
        return np.arange(rows.start, rows.stop, dtype=np.uint64) + np.uint64(
            self.truth_sampler.first_event_id
        )

    def _read_columns(self, names: Sequence[str], rows: slice) -> dict[str, Array]:
        """Columns of the truth do not need the frames; columns with a value per pixel are made with them."""
        table: dict[str, Array] = dict(self.truth(rows.start, rows.stop).columns())
        if not set(names) <= set(table):
            table = dict(self.patterns(rows.start, rows.stop).to("cpu").columns)
        return {name: table[name] for name in names}

    @property
    def _columns_of_pixels(self) -> tuple[str, ...]:
        """Columns with a value per pixel; all frames have the same ones, because files need that."""
        settings = self.settings
        if settings.readout == "counting":
            return ()
        raw = () if settings.calibrated else (GAIN_STAGE,)
        return (*raw, FRAME_MASK) if settings.saturation_photons > 0 else raw

    def _background(self, given: ArrayLike | None) -> Array:
        settings, detector = self.settings, self._simulated
        total = np.zeros(detector.n_pixels, np.float32)
        if settings.background_photons > 0:
            total += flat_background(detector, settings.background_photons, settings.background_slope)
        if settings.background_file:
            total += read_background(settings.background_file, detector)
        if given is not None:
            total += checked_background(given, detector)
        return to_device(total, self.device)


def simulate(
    particles: Particle | Ensemble | Sequence[Particle], beam: Beam, detector: Detector,
    settings: SimulateSettings | None = None, *, seed: int | None = None, device: DeviceName = "auto",
    orientations: ArrayLike | None = None, fluences: ArrayLike | None = None,
    background: ArrayLike | None = None,
) -> Experiment:  # fmt: skip
    """A simulated experiment: a source of patterns with their truth, computed when they are read.

    See :class:`Experiment` for the arguments.

    >>> from orienteer.detector.square import square_detector
    >>> from orienteer.particle.bodies import sphere
    >>> beam = Beam(photon_energy_eV=4600)
    >>> detector = square_detector(16, pixel_size_m=0.005, distance_m=0.2)
    >>> settings = SimulateSettings(frames=5, photons_per_frame=100, batch=3)
    >>> experiment = simulate(sphere(30), beam, detector, settings, seed=1)
    >>> [len(batch) for batch in experiment]
    [3, 2]
    >>> experiment.read([4, 0]).n_pixels
    256
    """
    return Experiment(
        particles, beam, detector, settings, seed=seed, device=device,
        orientations=orientations, fluences=fluences, background=background,
    )  # fmt: skip


def _with_seed(settings: SimulateSettings, seed: int | None) -> SimulateSettings:
    if seed is None:
        return settings
    try:
        return SimulateSettings.model_validate({**settings.model_dump(), "seed": seed})
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]["msg"]
        raise SettingsError(
            f"seed = {seed!r}: {problem[:1].lower()}{problem[1:]}.", "Give a whole number such as 1."
        ) from None


def _with_dead_pixels(detector: Detector, settings: SimulateSettings) -> Detector:
    dead = dead_pixels(detector, settings.dead_pixel_fraction, settings.dead_panels, settings.seed)
    return detector.with_mask(np.where(dead, PixelUse.NEVER, detector.mask)) if dead.any() else detector


def _as_ensemble(particles: Particle | Ensemble | Sequence[Particle]) -> Ensemble:
    if isinstance(particles, Ensemble):
        return particles
    several = tuple(particles) if isinstance(particles, Sequence) else (particles,)
    for particle in several:
        if not isinstance(particle, Particle):
            raise OrienteerError(
                f"{particle!r:.80} is not a particle.",
                "Open a structure with orienteer.open_structure, or use one of orienteer.particle.bodies.",
            )
    return Ensemble(several)


def _read_fluences(path: str) -> NDArray[np.float64]:
    read_head(path, "list of fluences")
    with reading(path, "list of fluences") as file, file.open(encoding="utf-8") as lines:
        return np.loadtxt(lines, ndmin=1, dtype=np.float64).reshape(-1)
