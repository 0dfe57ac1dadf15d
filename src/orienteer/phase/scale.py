"""The unit of a density: electrons per cubic angstrom where the scale is known, else an arbitrary one.

Amplitudes come in the unit of the intensity, which is photons on some pixel as a rule.  Three things fix the
scale: an intensity whose metadata tell how many electrons squared its unit is, the number of electrons of the
particle, or its mass.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orienteer.compute.arrays import Array
from orienteer.errors import OrienteerError

# The word in the metadata of an intensity: times this number it is |F|^2 in electrons squared.
ELECTRONS_SQUARED_PER_UNIT = "electrons_squared_per_unit"
# Electrons per kDa of protein; that of nucleic acids is 3 per cent lower.
ELECTRONS_PER_KDA = 534.0
ABSOLUTE = "electrons / A^3"
ARBITRARY = "arbitrary, 1 is the mean inside the support"
NO_SUM = "arbitrary, 1 is the mean modulus inside the support"


@dataclass(frozen=True)
class Scale:
    """What turns a density in amplitude units per voxel into one with a unit.

    factor : to multiply the density with.
    unit : of the result, in words.
    source : what the scale rests on, in words.
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
    support : (n, n, n) bool, where the particle is.
    metadata : of the intensity; ``electrons_squared_per_unit`` says what its unit is.
    electrons, mass_kDa : of the particle, where they are known; 0 where not.  They go before the metadata.
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
    if not total > 0:  # where the centre is missing and positivity is not asked for, nothing holds the sum
        modulus = float(abs(density[support]).sum())
        return Scale(n_voxels / modulus if modulus > 0 else 1.0, NO_SUM, "nothing: the density has no sum")
    if electrons > 0:
        return Scale(electrons / total / voxel_A**3, ABSOLUTE, f"{electrons:g} electrons, as given")
    if mass_kDa > 0:
        known = mass_kDa * ELECTRONS_PER_KDA
        return Scale(known / total / voxel_A**3, ABSOLUTE, f"a mass of {mass_kDa:g} kDa of protein, as given")
    return Scale(n_voxels / total, ARBITRARY, "nothing: neither the intensity nor the settings tell it")


def _number(value: Any) -> float | None:
    """A positive number of the metadata; None where there is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 < value < math.inf else None
