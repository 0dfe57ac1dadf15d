"""Numbers that are off by the factor between two units: metres for angstrom, keV for eV."""

import math
from collections.abc import Sequence

# A micrometre: so much in A is nothing, and in metres no particle is longer.
_LONGEST_M = 1e-6
# Softer photons are no longer counted one by one.
_SOFTEST_EV = 10.0
# Units that names may end with, in the first one of each row.  Inverse lengths come before lengths, because
# their names end as those do.
_UNITS = (
    {"inv_m": 1.0, "inv_um": 1e6, "inv_nm": 1e9, "inv_A": 1e10},
    {"m": 1.0, "cm": 1e-2, "mm": 1e-3, "um": 1e-6, "nm": 1e-9, "A": 1e-10, "pm": 1e-12},
    {"eV": 1.0, "keV": 1e3},
    {"s": 1.0, "ms": 1e-3, "us": 1e-6, "fs": 1e-15, "min": 60.0, "h": 3600.0},
    {"deg": 1.0, "mrad": math.degrees(1e-3), "rad": math.degrees(1.0)},
)


def unit_meant(name: str, value: object) -> str:
    """What a number seems to mean that cannot be in the unit its name ends with; empty where it can.

    >>> unit_meant("diameter_A", 2.5e-8)
    '2.5e-08 m are 250 A.'
    >>> unit_meant("photon_energy_eV", 4.6)
    '4.6 keV are 4600 eV.'
    >>> unit_meant("diameter_A", 250), unit_meant("diameter_A", 0)
    ('', '')
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return ""
    if name.endswith("_A") and 0 < value < _LONGEST_M:
        return f"{value:g} m are {value * 1e10:g} A."
    if name.endswith("_eV") and 0 < value <= _SOFTEST_EV:
        return f"{value:g} keV are {value * 1e3:g} eV."
    return ""


def in_unit_of(name: str, value: object, known: Sequence[str]) -> tuple[str, str]:
    """The setting that a name in another unit means, and its value in words; empty where there is none.

    known : the settings that there are.

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
