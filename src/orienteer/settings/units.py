"""Detect numbers in the wrong unit: metres instead of angstrom, keV instead of eV."""

import math
from collections.abc import Sequence

from orienteer.errors import SettingsError

# A micrometre: no particle is longer, so a number below 1e-6 for a length in A must be in metres.
_LONGEST_M = 1e-6
# Softer photons cannot be counted one by one, so a smaller energy must be in keV.
_SOFTEST_EV = 10.0
# Planck's constant times the speed of light, in eV Å.
HC_EV_A = 12398.419843320026
# No detector is farther from the sample, so a larger distance must be in mm.
_FARTHEST_M = 50.0
# Unit suffixes of names, each with its size in the first unit of the row.  Inverse lengths come before
# lengths, because inv_A also ends with A.
_UNITS = (
    {"inv_m": 1.0, "inv_um": 1e6, "inv_nm": 1e9, "inv_A": 1e10},
    {"m": 1.0, "cm": 1e-2, "mm": 1e-3, "um": 1e-6, "nm": 1e-9, "A": 1e-10, "pm": 1e-12},
    {"eV": 1.0, "keV": 1e3},
    {"s": 1.0, "ms": 1e-3, "us": 1e-6, "fs": 1e-15, "min": 60.0, "h": 3600.0},
    {"deg": 1.0, "mrad": math.degrees(1e-3), "rad": math.degrees(1.0)},
)


def unit_meant(name: str, value: object) -> str:
    """The likely meaning of a number that cannot be in the unit that its name ends with; otherwise empty.

    >>> unit_meant("diameter_A", 2.5e-8)
    '2.5e-08 m are 250 A.'
    >>> unit_meant("photon_energy_eV", 4.6)
    '4.6 keV are 4600 eV.'
    >>> unit_meant("distance_m", 200)
    '200 mm are 0.2 m.'
    >>> unit_meant("wavelength_A", 4600)
    '4600 eV are a wavelength of 2.695 A.'
    >>> unit_meant("diameter_A", 250), unit_meant("diameter_A", 0)
    ('', '')
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return ""
    if name.endswith("_A") and 0 < value < _LONGEST_M:
        return f"{value:g} m are {value * 1e10:g} A."
    if name.endswith("_eV") and 0 < value <= _SOFTEST_EV:
        return f"{value:g} keV are {value * 1e3:g} eV."
    if name.endswith("distance_m") and _FARTHEST_M < value < math.inf:
        return f"{value:g} mm are {value / 1e3:g} m."
    if name.endswith("wavelength_A") and HC_EV_A / _SOFTEST_EV < value < math.inf:
        return f"{value:g} eV are a wavelength of {HC_EV_A / value:.4g} A."
    return ""


def check_unit(name: str, value: float, called: str = "") -> float:
    """The number itself; raises a SettingsError if it cannot be in the unit that its name ends with.

    called : what the user called it, such as a flag; by default its name.

    >>> check_unit("distance_m", 200, "--distance-m")
    Traceback (most recent call last):
    orienteer.errors.SettingsError: --distance-m 200: this cannot be in the unit that the name ends with.
    200 mm are 0.2 m.
    """
    if meant := unit_meant(name, value):
        said = f"{called} {value:g}:" if called else f"{name} is {value!r}:"
        raise SettingsError(f"{said} this cannot be in the unit that the name ends with.", meant)
    return value


def in_unit_of(name: str, value: object, known: Sequence[str]) -> tuple[str, str]:
    """The setting that a name with another unit suffix means, and its value in words; empty if there is none.

    known : the names of all settings.

    >>> in_unit_of("diameter_nm", 24, ["symmetry", "diameter_A"])
    ('diameter_A', '24 nm are 240 A.')
    >>> in_unit_of("voxel_inv_nm", 0.02, ["voxel_inv_A"])
    ('voxel_inv_A', '0.02 1/nm are 0.002 1/A.')
    >>> in_unit_of("diameter", 24, ["symmetry", "diameter_A"])
    ('', '')
    """
    for units in _UNITS:
        for unit in [unit for unit in units if name.endswith(f"_{unit}")]:
            stem = name.removesuffix(unit)
            for other in [other for other in units if f"{stem}{other}" in known]:
                return f"{stem}{other}", _converted(value, unit, other, units[unit] / units[other])
    return "", ""


def _converted(value: object, unit: str, other: str, factor: float) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return ""
    return f"{value:g} {unit} are {value * factor:g} {other}.".replace("inv_", "1/")
