"""The numbers about each hit from which its kind is judged; the frame itself is not needed."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Evidence(NamedTuple):
    """N hits in G rings and J bands of separations.

    rings : (N, G) photons in rings about the beam.
    background : (N, G) background photons expected in them.
    fringes : (N, J) strongest fringe of each band of separations, relative to counting noise.
    brightness : (N,) photons of the particle, from the best sphere.
    size_A : (N,) diameter of that sphere.
    misfit : (N,) deviance of the rings from it per degree of freedom, 1 if a sphere explains them.
    """

    rings: NDArray[np.float32]
    background: NDArray[np.float32]
    fringes: NDArray[np.float32]
    brightness: NDArray[np.float32]
    size_A: NDArray[np.float32]
    misfit: NDArray[np.float32]

    def of(self, hits: NDArray[np.bool_] | NDArray[np.int64] | slice) -> "Evidence":
        """The evidence of the chosen hits."""
        return Evidence(*(array[hits] for array in self))

    @property
    def signal(self) -> NDArray[np.float64]:
        """(N, G) photons of the particle in rings; noise may make them negative."""
        return np.asarray(self.rings, np.float64) - self.background

    @property
    def significance(self) -> NDArray[np.float64]:
        """(N,) brightness in standard deviations of the photons of the background."""
        return np.asarray(self.brightness / np.sqrt(self.background.sum(axis=1, dtype=np.float64) + 1))

    @property
    def visibility(self) -> NDArray[np.float64]:
        """(N,) sum of I² / (I + b) over rings, to which the power of a fringe is proportional."""
        signal = np.maximum(self.signal, 0)
        return np.asarray((signal**2 / np.maximum(signal + self.background, 1e-9)).sum(axis=1))


def join(parts: list[Evidence]) -> Evidence:
    """The hits of all parts in order."""
    return Evidence(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
