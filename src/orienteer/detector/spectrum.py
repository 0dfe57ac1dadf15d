"""Spectrum: the photon energies of a shot relative to the beam's, the same or random in each shot."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from orienteer.errors import OrienteerError

Lines: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64]]
FWHM_PER_SIGMA = 2 * sqrt(2 * log(2))


class SpectrumLike(Protocol):
    """Anything that can draw the spectra of shots."""

    @property
    def n_lines(self) -> int:
        """L, the number of lines in one shot."""
        ...

    def draw(self, n_shots: int, generator: np.random.Generator) -> Lines:
        """Relative energies (N, L) and weights (N, L) of N shots; the weights of a shot sum to 1."""
        ...


@dataclass(frozen=True)
class Spectrum:
    """The same lines in every shot.

    relative_energies : energy of each line over the beam's photon energy.
    weights : share of the photons in each line; scaled to sum to 1.

    >>> Spectrum((0.99, 1.0, 1.01), (1, 2, 1)).weights
    (0.25, 0.5, 0.25)
    """

    relative_energies: Sequence[float]
    weights: Sequence[float]

    def __post_init__(self) -> None:
        energies = np.array(self.relative_energies, dtype=np.float64)
        weights = np.array(self.weights, dtype=np.float64)
        if energies.ndim != 1 or energies.shape != weights.shape or not len(energies):
            raise OrienteerError(
                f"the energies of a spectrum have shape {energies.shape} and its weights {weights.shape}; "
                "expected one weight for each energy."
            )
        if not np.all((energies > 0) & (energies < np.inf)):
            raise OrienteerError(
                "the energies of a spectrum must be positive, relative to the photon energy."
            )
        if not np.all((weights >= 0) & (weights < np.inf)) or weights.sum() <= 0:
            raise OrienteerError("the weights of a spectrum must be >= 0 and not all zero.")
        object.__setattr__(self, "relative_energies", tuple(energies.tolist()))
        object.__setattr__(self, "weights", tuple((weights / weights.sum()).tolist()))

    @property
    def n_lines(self) -> int:
        """L, the lines of one shot."""
        return len(self.weights)

    def draw(self, n_shots: int, generator: np.random.Generator) -> Lines:
        """Relative energies (N, L) and weights (N, L): the same row for every shot; nothing is drawn."""
        shape = (n_shots, self.n_lines)
        return np.broadcast_to(self.relative_energies, shape), np.broadcast_to(self.weights, shape)


@dataclass(frozen=True)
class SaseSpectrum:
    """Self-amplified spontaneous emission: each shot has its own random spikes.

    The energy of a spike is drawn from a Gaussian, and its share of the photons from an exponential
    distribution, like the intensity of one longitudinal mode.  Energies and shares are independent, so the
    mean over shots is a Gaussian spectrum of exactly the given width around the beam's energy, while the mean
    energy of a single shot jitters by σ √(2 / (n_spikes + 1)).

    bandwidth : relative full width at half maximum of the mean spectrum, up to 0.2.
    n_spikes : number of spikes in a shot.
    """

    bandwidth: float
    n_spikes: int = 8

    def __post_init__(self) -> None:
        if not 0 < self.bandwidth <= 0.2:
            raise OrienteerError(f"bandwidth is {self.bandwidth}; expected a relative width in (0, 0.2].")
        if not 1 <= self.n_spikes <= 1000:
            raise OrienteerError(f"n_spikes is {self.n_spikes}; expected 1 to 1000.")

    @property
    def n_lines(self) -> int:
        """L, the lines of one shot."""
        return self.n_spikes

    @property
    def sigma(self) -> float:
        """Relative standard deviation of the mean spectrum."""
        return self.bandwidth / FWHM_PER_SIGMA

    def draw(self, n_shots: int, generator: np.random.Generator) -> Lines:
        """Relative energies (N, L), ascending in a shot, and weights (N, L) that sum to 1."""
        energies = 1 + self.sigma * np.sort(generator.standard_normal((n_shots, self.n_spikes)), axis=1)
        shares = generator.standard_exponential((n_shots, self.n_spikes))
        return energies, shares / shares.sum(axis=1, keepdims=True)
