"""The unit of a density: electrons per cubic angstrom if the scale is known, else an arbitrary one.

Amplitudes are in the unit of the intensity, usually photons per pixel.  One of three things can fix the
scale: metadata of the intensity that give its unit in electrons squared, the number of electrons of the
particle, or its mass.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orienteer.compute.arrays import Array
from orienteer.errors import OrienteerError

# Key in the metadata of an intensity: times this number, the intensity is |F|^2 in electrons squared.
ELECTRONS_SQUARED_PER_UNIT = "electrons_squared_per_unit"
# Electrons per kDa of protein; that of nucleic acids is 3 per cent lower.
ELECTRONS_PER_KDA = 534.0
ABSOLUTE = "electrons / A^3"
ARBITRARY = "arbitrary, 1 is the mean inside the support"
NO_SUM = "arbitrary, 1 is the mean modulus inside the support"


@dataclass(frozen=True)
class Scale:
    """The factor that turns a density in amplitude units per voxel into one with a unit.

    factor : number to multiply the density by.
    unit : of the result, in words.
    source : what the scale is based on, in words.
    """

    factor: float
    unit: str
    source: str

    @property
    def is_absolute(self) -> bool:
        """Whether the unit is electrons per cubic angstrom."""
        return self.unit == ABSOLUTE


def find_scale(
    density: Array,
    support: Array,
    voxel_A: float,
    metadata: Mapping[str, Any] | None = None,
    electrons: float = 0.0,
    mass_kDa: float = 0.0,
) -> Scale:
    """The scale of a density.

    density : (n, n, n) real, in amplitude units per voxel: its FFT compares with sqrt(intensity).
    support : (n, n, n) bool, voxels of the particle.
    metadata : of the intensity; ``electrons_squared_per_unit`` gives its unit.
    electrons, mass_kDa : of the particle; 0 if not known.  They take precedence over the metadata.
    """
    if electrons > 0 and mass_kDa > 0:
        raise OrienteerError(
            f"both {electrons:g} electrons and a mass of {mass_kDa:g} kDa are given.", "Give one of them."
        )
    per_unit = _number((metadata or {}).get(ELECTRONS_SQUARED_PER_UNIT))
    if electrons <= 0 and mass_kDa <= 0 and per_unit is not None:
        factor = math.sqrt(per_unit) / voxel_A**3
        return Scale(factor, ABSOLUTE, "the unit of the intensity")
    total, n_voxels = float(density[support].sum()), int(support.sum())
    if not total > 0:  # if the centre is missing and positivity is off, nothing determines the sum
        modulus = float(abs(density[support]).sum())
        return Scale(n_voxels / modulus if modulus > 0 else 1.0, NO_SUM, "nothing: the density has no sum")
    if electrons > 0:
        return Scale(electrons / total / voxel_A**3, ABSOLUTE, f"{electrons:g} electrons, as given")
    if mass_kDa > 0:
        known = mass_kDa * ELECTRONS_PER_KDA
        return Scale(known / total / voxel_A**3, ABSOLUTE, f"a mass of {mass_kDa:g} kDa of protein, as given")
    return Scale(n_voxels / total, ARBITRARY, "nothing: neither the intensity nor the settings give it")


def _number(value: Any) -> float | None:
    """A positive number from the metadata; None if there is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 < value < math.inf else None
