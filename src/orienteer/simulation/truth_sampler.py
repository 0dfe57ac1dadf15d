"""Draw the truth in fixed blocks of frames, so that it does not depend on the batches."""

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orienteer.detector.beam import Beam
from orienteer.detector.spectrum import Spectrum
from orienteer.errors import OrienteerError
from orienteer.orientation.quaternion import normalise, random_uniform
from orienteer.particle.checked_numbers import as_numbers
from orienteer.simulation.placement import place_in_chain, widest_separation_A
from orienteer.simulation.random_streams import FRAME_BITS, first_event_id, random_stream
from orienteer.simulation.settings import SimulateSettings
from orienteer.simulation.truth import ShotKind, Truth, join

BLOCK = 4096
# Larger deviations are clipped, so that the largest q of an experiment is known before its first frame.
SIZE_LIMIT_SIGMA = 4.0
OFFSET_LIMIT_SIGMA = 5.0


class TruthSampler:
    """Draws the truth of any frames; that of frame i does not depend on the other frames.

    settings : fractions, jitters and seed.
    beam : photon energy and spectrum.
    class_weights : (C,) shares of the particles, which sum to 1.
    radius_A : (C,) radii of the particles, to place several in one shot.
    n_junk : number of pieces of junk to choose from.
    orientations : (K, 4) quaternions to use in turn; uniformly random if None.
    fluences : measured fluences to draw from; log-normal if None.
    widest_coherent_A : separation in A up to which the particles of a shot interfere.
    """

    def __init__(
        self, settings: SimulateSettings, beam: Beam, class_weights: ArrayLike, radius_A: ArrayLike,
        n_junk: int = 1, orientations: ArrayLike | None = None, fluences: ArrayLike | None = None,
        widest_coherent_A: float = np.inf,
    ) -> None:  # fmt: skip
        self.settings, self.beam, self.n_junk = settings, beam, n_junk
        self.class_weights = np.asarray(class_weights, float)
        self.radius_A = np.asarray(radius_A, float)
        self.widest_coherent_A = widest_coherent_A
        self.n_particles = settings.most_particles if settings.multiple_fraction > 0 else 1
        self.orientations = None if orientations is None else _checked_orientations(orientations)
        self.fluences = None if fluences is None else _checked_fluences(fluences)
        self.energy_limits_eV = _energy_limits_eV(beam, self._generator("spectrum", 0))
        self.first_event_id = first_event_id(settings.seed)
        self._block = lru_cache(maxsize=2)(self._draw_block)

    @property
    def log_size_sigma(self) -> float:
        """Standard deviation of the logarithm of the size."""
        return _log_sigma(self.settings.size_spread)

    @property
    def largest_size(self) -> float:
        """The largest size factor that can occur."""
        return float(self.size_factor(np.array(SIZE_LIMIT_SIGMA)))

    @property
    def largest_offset_m(self) -> float:
        """The largest offset of the beam's centre along x or y."""
        return OFFSET_LIMIT_SIGMA * self.settings.centre_jitter_m

    def shots(self, first: int, last: int) -> Truth:
        """The truth of frames first to last - 1."""
        return self.frames(np.arange(first, last))

    def frames(self, numbers: NDArray[np.int64]) -> Truth:
        """The truth of the frames with these numbers (N,), in any order."""
        if len(numbers) == 0:
            return self._block(0)[:0]
        if numbers.min() < 0 or numbers.max() >= 2**FRAME_BITS:
            raise OrienteerError(
                f"frames {numbers.min()} to {numbers.max()} do not exist; numbers go from 0 to 2^40 - 1.",
                "Ask for frames in this range.",
            )
        block = numbers // BLOCK
        wanted = np.unique(block)
        parts = [self._block(int(b))[numbers[block == b] % BLOCK] for b in wanted]
        if len(parts) == 1:
            return parts[0]
        return join(parts)[np.argsort(np.argsort(block, kind="stable"), kind="stable")]

    def size_factor(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Log-normal sizes of mean 1 for standard normal numbers, which are clipped at 4."""
        sigma = self.log_size_sigma
        return np.exp(sigma * np.clip(z, -SIZE_LIMIT_SIGMA, SIZE_LIMIT_SIGMA) - sigma**2 / 2)

    def offset_m(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Offsets of the beam's centre for standard normal numbers, which are clipped at 5."""
        return np.clip(z, -OFFSET_LIMIT_SIGMA, OFFSET_LIMIT_SIGMA) * self.settings.centre_jitter_m

    def spectra(self, n: int, draw: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Photon energies (n, L) in eV within the limits, and the shares (n, L) of the lines."""
        energy, weight = self.beam.draw_spectra(n, draw)
        return np.clip(energy, *self.energy_limits_eV), np.array(weight)

    def _generator(self, stream: str, block: int) -> np.random.Generator:
        return random_stream(self.settings.seed, stream, block)

    def _draw_block(self, block: int) -> Truth:
        settings, n, M = self.settings, BLOCK, self.n_particles
        number = np.arange(block * n, (block + 1) * n)
        draw = self._generator("kind", block)
        limits = np.cumsum([settings.empty_fraction, settings.junk_fraction, settings.multiple_fraction])
        where = np.searchsorted(limits, draw.random(n), side="right")
        kind = np.array([ShotKind.EMPTY, ShotKind.JUNK, ShotKind.MULTIPLE, ShotKind.HIT], np.uint8)[where]
        junk, junk_brightness = draw.integers(0, self.n_junk, n), 10 ** draw.uniform(-1.0, 0.5, n)
        particle_class = self._classes(block, kind, junk)
        # The first particle is always drawn first, so that it is the same with and without multiple hits.
        draw = self._generator("size", block)
        size = self.size_factor(np.stack([draw.standard_normal(n) for _ in range(M)], axis=1))
        position = self._positions(block, particle_class, size)
        separation = widest_separation_A(position)
        fluence = self._fluence(block)
        energy, weight = self.spectra(n, self._generator("spectrum", block))
        return Truth(
            event_id=np.uint64(self.first_event_id) + number.astype(np.uint64),
            kind=kind,
            particle_class=particle_class,
            orientation=self._orientations(number, block),
            position_A=position,
            size=size,
            interferes=(kind == ShotKind.MULTIPLE) & (separation <= self.widest_coherent_A),
            fluence=np.where(kind == ShotKind.JUNK, fluence * junk_brightness, fluence),
            offset_m=self.offset_m(self._generator("offset", block).standard_normal((n, 2))),
            energy_eV=energy,
            line_weight=weight,
            background=_log_normal(self._generator("background", block), settings.background_jitter, n),
        )

    def _classes(self, block: int, kind: NDArray[np.uint8], junk: NDArray[np.int64]) -> NDArray[np.int32]:
        n, M, choices = len(kind), self.n_particles, len(self.class_weights)
        first = self._generator("class", block).choice(choices, n, p=self.class_weights)
        draw = self._generator("number", block)
        number = draw.integers(2, max(M, 2) + 1, n)
        others = draw.choice(choices, (n, M - 1), p=self.class_weights)
        first = np.where(kind == ShotKind.JUNK, junk, first)
        classes = np.concatenate([first[:, None], others], axis=1).astype(np.int32)
        present = np.where(kind == ShotKind.MULTIPLE, number, np.where(kind == ShotKind.EMPTY, 0, 1))
        classes[np.arange(M) >= present[:, None]] = -1
        return classes

    def _orientations(self, number: NDArray[np.int64], block: int) -> NDArray[np.float64]:
        draw = self._generator("orientation", block)
        drawn = np.stack([random_uniform(BLOCK, draw) for _ in range(self.n_particles)], axis=1)
        if self.orientations is not None:
            drawn[:, 0] = self.orientations[number % len(self.orientations)]
        return drawn

    def _positions(
        self, block: int, particle_class: NDArray[np.int32], size: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        if self.n_particles == 1:
            return np.zeros((BLOCK, 1, 3))
        draw = self._generator("position", block)
        direction = draw.standard_normal((BLOCK, self.n_particles, 3))
        direction /= np.linalg.norm(direction, axis=2, keepdims=True)
        stretch = draw.random((BLOCK, self.n_particles))
        present = particle_class >= 0
        radius = np.where(present, self.radius_A[particle_class % len(self.radius_A)] * size, 0.0)
        step = self.settings.separation_A * (0.5 + stretch)
        position = place_in_chain(direction, radius, step, 0.001 + 0.099 * stretch)
        return np.where(present[..., None], position, 0.0)

    def _fluence(self, block: int) -> NDArray[np.float64]:
        draw = self._generator("fluence", block)
        if self.fluences is not None:
            return np.asarray(draw.choice(self.fluences, BLOCK))
        return _log_normal(draw, self.settings.fluence_jitter, BLOCK)


def _log_sigma(spread: float) -> float:
    """Standard deviation of ln x for a log-normal x of this relative standard deviation."""
    return float(np.sqrt(np.log1p(spread**2)))


def _log_normal(draw: np.random.Generator, spread: float, n: int) -> NDArray[np.float64]:
    """n log-normal numbers of mean 1 and of relative standard deviation ``spread``."""
    sigma = _log_sigma(spread)
    return np.exp(sigma * draw.standard_normal(n) - sigma**2 / 2)


def _energy_limits_eV(beam: Beam, draw: np.random.Generator) -> tuple[float, float]:
    """Lowest and highest photon energy of all lines of all shots.

    A fixed spectrum gives them exactly.  Random lines have no limit of their own: the limits are 1.5 times as
    far from the mean energy as the extremes of one block of frames, and the few lines beyond are clipped.
    """
    energies, centre = beam.draw_spectra(BLOCK, draw)[0], beam.photon_energy_eV
    lowest, highest = float(energies.min()), float(energies.max())
    if beam.spectrum is None or isinstance(beam.spectrum, Spectrum):
        return lowest, highest
    return min(centre, centre + 1.5 * (lowest - centre)), max(centre, centre + 1.5 * (highest - centre))


def _checked_orientations(orientations: ArrayLike) -> NDArray[np.float64]:
    values = np.atleast_2d(as_numbers(orientations, "orientations"))
    if values.shape[1:] != (4,) or len(values) == 0:
        raise OrienteerError(
            f"orientations have shape {values.shape}; expected quaternions (K, 4), scalar first.",
            "Give one row of four numbers for each orientation.",
        )
    if not np.all(np.linalg.norm(values, axis=1) > 0):
        raise OrienteerError(
            "an orientation is a quaternion of length 0, which is not a rotation.",
            "Leave it out, or give its w, x, y, z.",
        )
    return np.asarray(normalise(values))


def _checked_fluences(fluences: ArrayLike) -> NDArray[np.float64]:
    values = as_numbers(fluences, "measured fluences")
    if values.ndim != 1 or values.size == 0 or not np.all(values >= 0) or not values.mean() > 0:
        raise OrienteerError(
            "measured fluences must be a list of numbers >= 0, not all of them 0.",
            "Replace values that are negative or NaN; only the ratios of fluences matter.",
        )
    return np.asarray(values / values.mean())
