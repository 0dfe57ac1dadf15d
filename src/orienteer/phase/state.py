"""PhaseState: the densities of many starts during phasing, in one array."""

from dataclasses import dataclass, replace

import numpy as np

from orienteer.compute.arrays import Array, array_namespace


@dataclass(frozen=True, eq=False)
class PhaseState:
    """B starts that are phased side by side.  Iterations overwrite the arrays and return the state.

    density : (B, n, n, n) float32, the iterate, in amplitude units per voxel, so that its FFT compares with
        the amplitudes of the data.  The particle lies around the voxel n // 2.  Between iterations the
        iterate obeys no constraint; :func:`orienteer.phase.constraints.project_support` enforces them.
    support : (B, n, n, n) bool, voxels in which the density may differ from 0.
    background : (B,) float32, flat background of the intensity, in its unit.
    volume : (B,) float64, final voxels of each support.
    positive : whether the density must not be negative.
    """

    density: Array
    support: Array
    background: Array
    volume: Array
    positive: bool = True

    @property
    def n_starts(self) -> int:
        """Starts in the batch."""
        return int(self.density.shape[0])

    def copy(self) -> "PhaseState":
        """The same state, with copies of its arrays."""
        arrays = {name: getattr(self, name).copy() for name in ("density", "support", "background")}
        return replace(self, **arrays)

    def select(self, starts: Array) -> "PhaseState":
        """The state of some of the starts, by their numbers."""
        index = array_namespace(self.density).asarray(starts)
        arrays = {name: getattr(self, name)[index] for name in ("density", "support", "background")}
        return replace(self, **arrays, volume=np.asarray(self.volume)[np.asarray(starts)])
