"""Bulk solvent: an atom in water scatters by its difference to the water that it displaces.

The displaced volumes are those of Table 1 of CRYSOL (Svergun, Barberato & Koch, J. Appl. Cryst. 28, 768,
1995).  Those of H, C, N and O are from Fraser, MacRae & Suzuki (J. Appl. Cryst. 11, 693, 1978), who also
proposed the Gaussian shape; those of S, P and the metals are spheres with radii from the International Tables
for X-ray Crystallography III (1968).  The values were checked against other programs and not against the
papers: H, C, N, O, P and S against PLUMED and pysingfel, the metals against one copy of CRYSOL's table.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from orienteer.errors import OrienteerError
from orienteer.particle.scatterers import ScattererTable
from orienteer.particle.structure import Structure

# Electrons per Å³ of water at room temperature.
WATER_DENSITY = 0.334

# Å³; H, C, N and O are fitted to measured volumes of molecules, and deuterium is as large as hydrogen.
DISPLACED_VOLUME_A3 = {
    "H": 5.15, "D": 5.15, "C": 16.44, "N": 2.49, "O": 9.13,
    # Spheres of radius 1.68, 1.11, 1.60, 1.97, 1.30, 1.24, 1.28 and 1.33 Å.
    "S": 19.86, "P": 5.73, "Mg": 17.16, "Ca": 31.89, "Mn": 9.20, "Fe": 7.99, "Cu": 8.78, "Zn": 9.85,
}  # fmt: skip


def in_solvent(
    structure: Structure, solvent_density: float = WATER_DENSITY, volume_scale: float = 1.0
) -> Structure:
    """The contrast of the structure against bulk solvent: f − ρ V exp(−π V^(2/3) |q|²) for each atom.

    solvent_density : ρ in electrons per Å³.
    volume_scale : factor on all displaced volumes V.  Hydrogens have volumes of their own, so a protein model
        without hydrogens displaces about 30 % too little: a scale of 1.4 makes up for that.

    F(0) is the number of electrons minus those of the displaced solvent.  Scatterers that are not atoms
    (blobs, hydration layers) displace nothing.
    """
    for value, what in ((solvent_density, "solvent density"), (volume_scale, "scale of displaced volumes")):
        if not (np.isfinite(value) and value >= 0):
            raise OrienteerError(f"the {what} must not be negative, got {value}.")
    table = structure.table
    volumes = volume_scale * displaced_volumes_A3(table)
    contrast = ScattererTable(
        table.names,
        np.column_stack([table.amplitudes, -solvent_density * volumes]),
        np.column_stack([table.widths_A2, 4 * np.pi * volumes ** (2 / 3)]),
        table.atomic_numbers,
        table.elements,
    )
    return replace(structure, table=contrast)


def displaced_volumes_A3(table: ScattererTable) -> NDArray[np.float64]:
    """Volume that one atom of each kind displaces, (T,) Å³; 0 for scatterers that are not atoms.

    Elements that the table lacks are taken as spheres of their covalent radius (from gemmi).
    """
    import gemmi

    volumes = np.zeros(len(table))
    for kind, element in enumerate(table.elements):
        if element in DISPLACED_VOLUME_A3:
            volumes[kind] = DISPLACED_VOLUME_A3[element]
        elif element:
            volumes[kind] = 4 / 3 * np.pi * gemmi.Element(element).covalent_r ** 3
    return volumes
