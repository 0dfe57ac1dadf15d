"""Truth: what happened in each simulated shot, drawn in fixed blocks so that batches do not matter."""

from dataclasses import dataclass, fields
from enum import IntEnum
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orienteer.detector.beam import HC_EV_A, Beam
from orienteer.detector.spectrum import Spectrum
from orienteer.errors import OrienteerError
from orienteer.orientation.quaternion import normalise, random_uniform
from orienteer.simulation.random_streams import random_stream
from orienteer.simulation.settings import SimulateSettings

BLOCK = 4096
# Draws are cut off here, so that the largest q of an experiment is known before its first frame.
SIZE_LIMIT_SIGMA = 4.0
OFFSET_LIMIT_SIGMA = 5.0


class ShotKind(IntEnum):
    """What the beam met."""

    HIT = 0
    EMPTY = 1
    JUNK = 2
    MULTIPLE = 3


@dataclass(frozen=True, eq=False)
class Truth:
    """N shots of up to M particles and L spectral lines.

    event_id : (N,) uint64, the number of the frame.
    kind : (N,) uint8, :class:`ShotKind`.
    particle_class : (N, M) int32, the particle's number in the ensemble; -1 where there is none.  In a junk
        shot the first entry numbers the piece of junk.
    orientation : (N, M, 4) quaternions that turn the particles.
    position_A : (N, M, 3) where the particles are; the first is at the origin.
    fluence : (N,) relative to the mean.
    size : (N,) factor on all lengths of the particles.
    offset_m : (N, 2) x and y of the point where the direct beam meets the plane of the detector.
    energy_eV, line_weight : (N, L) photon energies and their shares, which sum to 1.
    background : (N,) factor on the background.
    """

    event_id: NDArray[np.uint64]
    kind: NDArray[np.uint8]
    particle_class: NDArray[np.int32]
    orientation: NDArray[np.float64]
    position_A: NDArray[np.float64]
    fluence: NDArray[np.float64]
    size: NDArray[np.float64]
    offset_m: NDArray[np.float64]
    energy_eV: NDArray[np.float64]
    line_weight: NDArray[np.float64]
    background: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.event_id)

    def __getitem__(self, shots: slice | NDArray[np.int64]) -> "Truth":
        return Truth(*(getattr(self, field.name)[shots] for field in fields(self)))

    @property
    def mean_energy_eV(self) -> NDArray[np.float64]:
        """(N,) mean photon energy of each shot."""
        return np.asarray((self.energy_eV * self.line_weight).sum(1))

    def columns(self) -> dict[str, NDArray[np.generic]]:
        """The columns stored beside the frames; ``wavelength_A`` is what an experiment would measure too."""
        absent = np.isin(self.kind, (ShotKind.EMPTY, ShotKind.JUNK))
        table: dict[str, NDArray[np.generic]] = {
            "wavelength_A": HC_EV_A / self.mean_energy_eV,
            "truth_orientation": self.orientation[:, 0],
            "truth_fluence": self.fluence,
            "truth_class": np.where(absent, -1, self.particle_class[:, 0]).astype(np.int32),
            "truth_kind": self.kind,
            "truth_offset_m": self.offset_m,
            "truth_size": self.size,
            "truth_energy_eV": self.mean_energy_eV,
            "truth_background": self.background,
        }
        if self.particle_class.shape[1] > 1:
            table["truth_classes"] = np.where(absent[:, None], -1, self.particle_class).astype(np.int32)
            table["truth_orientations"] = self.orientation
            table["truth_positions_A"] = self.position_A
        if self.energy_eV.shape[1] > 1:
            table["truth_line_energies_eV"] = self.energy_eV
            table["truth_line_weights"] = self.line_weight
        return table


class TruthSampler:
    """Draws the truth of any range of frames; frame i is the same whatever is drawn around it.

    settings : fractions, jitters and seed.
    beam : photon energy and spectrum.
    class_weights : (C,) shares of the particles, which sum to 1.
    radius_A : (C,) radii of the particles, for those that touch.
    n_junk : pieces of junk to choose from.
    orientations : (K, 4) quaternions taken in turn; uniformly random when None.
    fluences : measured fluences to draw from; log-normal when None.
    """

    def __init__(
        self, settings: SimulateSettings, beam: Beam, class_weights: ArrayLike, radius_A: ArrayLike,
        n_junk: int = 1, orientations: ArrayLike | None = None, fluences: ArrayLike | None = None,
    ) -> None:  # fmt: skip
        self.settings, self.beam, self.n_junk = settings, beam, n_junk
        self.class_weights = np.asarray(class_weights, float)
        self.radius_A = np.asarray(radius_A, float)
        self.n_particles = settings.most_particles if settings.multiple_fraction > 0 else 1
        self.orientations = (
            None if orientations is None else normalise(np.atleast_2d(np.asarray(orientations, float)))
        )
        self.fluences = None if fluences is None else _checked_fluences(fluences)
        self.energy_limits_eV = _energy_limits_eV(beam, self._generator("spectrum", 0))
        self._block = lru_cache(maxsize=2)(self._draw_block)

    @property
    def largest_size(self) -> float:
        """The largest size factor that can occur."""
        sigma = _log_sigma(self.settings.size_spread)
        return float(np.exp(SIZE_LIMIT_SIGMA * sigma - sigma**2 / 2))

    @property
    def largest_offset_m(self) -> float:
        """The largest offset of the beam's centre along x or y."""
        return OFFSET_LIMIT_SIGMA * self.settings.centre_jitter_m

    def shots(self, first: int, last: int) -> Truth:
        """The truth of frames first to last - 1."""
        parts = []
        for number in range(first // BLOCK, (last + BLOCK - 1) // BLOCK):
            start = number * BLOCK
            parts.append(self._block(number)[max(first - start, 0) : last - start])
        return Truth(
            *(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Truth))
        )

    def _generator(self, stream: str, block: int) -> np.random.Generator:
        return random_stream(self.settings.seed, stream, block)

    def _draw_block(self, block: int) -> Truth:
        settings, n = self.settings, BLOCK
        event_id = np.arange(block * n, (block + 1) * n, dtype=np.uint64)
        draw = self._generator("kind", block)
        limits = np.cumsum([settings.empty_fraction, settings.junk_fraction, settings.multiple_fraction])
        where = np.searchsorted(limits, draw.random(n), side="right")
        kind = np.array([ShotKind.EMPTY, ShotKind.JUNK, ShotKind.MULTIPLE, ShotKind.HIT], np.uint8)[where]
        junk, junk_brightness = draw.integers(0, self.n_junk, n), 10 ** draw.uniform(-1.0, 0.5, n)
        particle_class = self._classes(block, kind, junk)

        fluence = self._fluence(block)
        fluence = np.where(kind == ShotKind.JUNK, fluence * junk_brightness, fluence)
        sigma = _log_sigma(settings.size_spread)
        z = np.clip(self._generator("size", block).standard_normal(n), -SIZE_LIMIT_SIGMA, SIZE_LIMIT_SIGMA)
        offset = np.clip(
            self._generator("offset", block).standard_normal((n, 2)), -OFFSET_LIMIT_SIGMA, OFFSET_LIMIT_SIGMA
        )
        energy, weight = self.beam.draw_spectra(n, self._generator("spectrum", block))
        size = np.exp(sigma * z - sigma**2 / 2)
        return Truth(
            event_id, kind, particle_class, self._orientations(event_id, block),
            self._positions(block, particle_class, size), fluence, size, offset * settings.centre_jitter_m,
            np.clip(energy, *self.energy_limits_eV), np.array(weight),
            _log_normal(self._generator("background", block), settings.background_jitter, n),
        )  # fmt: skip

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

    def _orientations(self, event_id: NDArray[np.uint64], block: int) -> NDArray[np.float64]:
        # The first particle's come first, so that they stay when shots with several are switched on.
        draw = self._generator("orientation", block)
        drawn = np.stack([random_uniform(BLOCK, draw) for _ in range(self.n_particles)], axis=1)
        if self.orientations is not None:
            drawn[:, 0] = self.orientations[event_id.astype(np.int64) % len(self.orientations)]
        return drawn

    def _positions(
        self, block: int, particle_class: NDArray[np.int32], size: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """A chain: each particle lies in a random direction from the one before it."""
        draw = self._generator("position", block)
        M = self.n_particles
        direction = draw.standard_normal((BLOCK, M, 3))
        direction /= np.linalg.norm(direction, axis=2, keepdims=True)
        stretch = draw.random((BLOCK, M))
        radius = (
            np.where(particle_class >= 0, self.radius_A[particle_class % len(self.radius_A)], 0.0)
            * size[:, None]
        )
        step = np.zeros((BLOCK, M))
        touching = (radius[:, 1:] + radius[:, :-1]) * (1 + 0.1 * stretch[:, 1:])
        apart = self.settings.separation_A * (0.5 + stretch[:, 1:])
        step[:, 1:] = apart if self.settings.separation_A > 0 else touching
        return np.where((particle_class >= 0)[..., None], np.cumsum(step[..., None] * direction, axis=1), 0.0)

    def _fluence(self, block: int) -> NDArray[np.float64]:
        draw = self._generator("fluence", block)
        if self.fluences is not None:
            return np.asarray(draw.choice(self.fluences, BLOCK))
        return _log_normal(draw, self.settings.fluence_jitter, BLOCK)


def _log_sigma(spread: float) -> float:
    """Standard deviation of ln x for a log-normal x of this relative standard deviation."""
    return float(np.sqrt(np.log1p(spread**2)))


def _log_normal(draw: np.random.Generator, spread: float, n: int) -> NDArray[np.float64]:
    """Numbers of mean 1 and of relative standard deviation ``spread``."""
    sigma = _log_sigma(spread)
    return np.exp(sigma * draw.standard_normal(n) - sigma**2 / 2)


def _energy_limits_eV(beam: Beam, draw: np.random.Generator) -> tuple[float, float]:
    """The photon energies between which all lines of all shots lie.

    Lines that are drawn have no limit of their own: what one block shows, and half as much again, bounds
    them all, and the very few beyond are moved to the limit.  Fixed lines are known, and stay as they are.
    """
    energies, centre = beam.draw_spectra(BLOCK, draw)[0], beam.photon_energy_eV
    lowest, highest = float(energies.min()), float(energies.max())
    if beam.spectrum is None or isinstance(beam.spectrum, Spectrum):
        return lowest, highest
    return min(centre, centre + 1.5 * (lowest - centre)), max(centre, centre + 1.5 * (highest - centre))


def _checked_fluences(fluences: ArrayLike) -> NDArray[np.float64]:
    values = np.asarray(fluences, float)
    if values.ndim != 1 or values.size == 0 or not np.all(values >= 0) or not 0 < values.mean() < np.inf:
        raise OrienteerError("measured fluences must be a list of finite numbers >= 0, not all of them 0.")
    return np.asarray(values / values.mean())
