"""Truth: what happened in each simulated shot."""

from dataclasses import dataclass, fields
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from orienteer.detector.beam import HC_EV_A
from orienteer.simulation.placement import widest_separation_A


class ShotKind(IntEnum):
    """What the beam hit."""

    HIT = 0
    EMPTY = 1
    JUNK = 2
    MULTIPLE = 3


@dataclass(frozen=True, eq=False)
class Truth:
    """N shots of up to M particles and L spectral lines.

    event_id : (N,) uint64.
    kind : (N,) uint8, :class:`ShotKind`.
    particle_class : (N, M) int32, the particle's number in the ensemble; -1 if there is no particle.  In a
        junk shot the first entry is the number of the piece of junk.
    orientation : (N, M, 4) quaternions that turn the particles.
    position_A : (N, M, 3) positions of the particles; the first is at the origin.
    size : (N, M) factor on all lengths of each particle.
    interferes : (N,) bool, whether the fields of several particles add; otherwise their intensities do.
    fluence : (N,) relative to the mean.
    offset_m : (N, 2) x and y of the point where the direct beam meets the plane of the detector.
    energy_eV, line_weight : (N, L) photon energies and their shares, which sum to 1.
    background : (N,) factor on the background.
    """

    event_id: NDArray[np.uint64]
    kind: NDArray[np.uint8]
    particle_class: NDArray[np.int32]
    orientation: NDArray[np.float64]
    position_A: NDArray[np.float64]
    size: NDArray[np.float64]
    interferes: NDArray[np.bool_]
    fluence: NDArray[np.float64]
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
        """The columns stored beside the frames; only ``wavelength_A`` would also be known in an experiment.

        A shot without a particle has class -1 and an orientation of NaN.
        """
        absent = np.isin(self.kind, (ShotKind.EMPTY, ShotKind.JUNK))
        table: dict[str, NDArray[np.generic]] = {
            "wavelength_A": HC_EV_A / self.mean_energy_eV,
            "truth_orientation": np.where(absent[:, None], np.nan, self.orientation[:, 0]),
            "truth_fluence": self.fluence,
            "truth_class": np.where(absent, -1, self.particle_class[:, 0]).astype(np.int32),
            "truth_kind": self.kind,
            "truth_offset_m": self.offset_m,
            "truth_size": self.size[:, 0],
            "truth_energy_eV": self.mean_energy_eV,
            "truth_background": self.background,
        }
        if self.particle_class.shape[1] > 1:
            table["truth_classes"] = np.where(absent[:, None], -1, self.particle_class).astype(np.int32)
            table["truth_orientations"] = self.orientation
            table["truth_positions_A"] = self.position_A
            table["truth_sizes"] = self.size
            table["truth_separation_A"] = widest_separation_A(self.position_A)
            table["truth_interference"] = self.interferes
        if self.energy_eV.shape[1] > 1:
            table["truth_line_energies_eV"] = self.energy_eV
            table["truth_line_weights"] = self.line_weight
        return table


def join(parts: list[Truth]) -> Truth:
    """The shots of all parts in order."""
    return Truth(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Truth)))
