"""Settings of the particle, and the particles that they describe."""

from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from orienteer.errors import FileError, SettingsError
from orienteer.particle.base import Particle
from orienteer.particle.bodies import PROTEIN_DENSITY
from orienteer.particle.conformations import Ensemble, ensemble_on_path
from orienteer.particle.hydration import hydration_layer
from orienteer.particle.named_bodies import BODY_NAMES, named_body
from orienteer.particle.opening import open_structure
from orienteer.particle.solvent import WATER_DENSITY, in_solvent
from orienteer.particle.structure import Structure
from orienteer.settings.section import Section

# Contrast of a hydration layer against bulk water, electrons per Å³.
_LAYER_CONTRAST = 0.03


class ParticleSettings(Section):
    """What scatters: a structure file or a built-in body, its conformations and its solvent.

    The default, a virus of 300 Å, suits a detector of 128 × 128 pixels of 0.625 mm at 0.2 m and 4600 eV: its
    pixels are 0.00116 1/Å apart, so a speckle is at least two pixels wide for particles of up to 430 Å.
    """

    structure: str = Field(
        "virus", min_length=1, description=f"PDB or mmCIF file, or a built-in body: {', '.join(BODY_NAMES)}."
    )
    diameter_A: float = Field(300.0, gt=1, le=1e5, description="Largest extent of a built-in body in A.")
    density: float = Field(
        PROTEIN_DENSITY,
        gt=0,
        le=20,
        description="Electron density of a built-in body in electrons per cubic A.",
    )
    axis_ratio: float = Field(0.6, gt=0.01, le=1, description="Short over long axis of the spheroid.")
    n_blobs: int = Field(12, ge=1, le=100_000, description="Gaussian balls in the body named blobs.")
    seed: int = Field(1, ge=0, lt=2**63, description="Seed of the random body named blobs.")
    assembly: str = Field(
        "1", description="Biological assembly to build; none uses the atoms as they were deposited."
    )
    altloc: str = Field(
        "highest", description="Alternate locations: highest (occupancy), all, or the letter to prefer."
    )
    model: int = Field(1, ge=1, description="Number of the model in a file that holds several.")
    waters: bool = Field(False, description="Keep the waters of the file.")
    hydrogens: bool = Field(True, description="Keep the hydrogens of the file.")
    hetero_atoms: bool = Field(True, description="Keep ligands and ions of the file.")
    occupancies: bool = Field(
        True, description="Use the occupancies of the file; otherwise every atom counts fully."
    )
    b_factors: bool = Field(True, description="Use the B factors of the file; otherwise they are zero.")
    anomalous: bool = Field(True, description="Add the anomalous terms f' and f'' at the photon energy.")
    solvent_contrast: bool = Field(
        False,
        description="Subtract the bulk water that the atoms displace, as for a particle in water.",
    )
    solvent_density: float = Field(
        WATER_DENSITY,
        ge=0,
        le=5,
        description="Electron density of the bulk solvent in electrons per cubic A.",
    )
    displaced_volume_scale: float = Field(
        1.0,
        gt=0,
        le=10,
        description="Factor on displaced volumes; about 1.4 for a protein without hydrogens.",
    )
    hydration_A: float = Field(
        0.0, ge=0, le=50, description="Thickness of a water layer around the atoms in A."
    )
    hydration_density: float = Field(
        0.0,
        ge=0,
        le=5,
        description="Electron density of that layer; 0 means 0.334, or 0.03 with solvent_contrast.",
    )
    conformations: tuple[str, ...] = Field((), description="Further structures that occur besides the first.")
    path_fractions: tuple[float, ...] = Field(
        (),
        description="States to use instead, between structure (0) and the one entry of conformations (1).",
    )
    weights: tuple[float, ...] = Field(
        (), description="How often each state occurs, in the order given; empty: all equally often."
    )


def particle_from_settings(settings: ParticleSettings) -> Ensemble:
    """The particles that the settings describe, with weights: one unless there are conformations."""
    names = (settings.structure, *settings.conformations)
    n_states = len(settings.path_fractions or names)
    if settings.weights and len(settings.weights) != n_states:
        raise SettingsError(
            f"particle.weights has {len(settings.weights)} values for {n_states} states.",
            "Give one weight per state, or none.",
        )
    weights = np.array(settings.weights) if settings.weights else np.ones(n_states)
    ends = tuple(_open_one(name, settings) for name in names)
    if settings.path_fractions:
        ensemble = _on_path(names, ends, settings.path_fractions, weights)
    else:
        ensemble = Ensemble(ends, weights, tuple(Path(name).name for name in names))
    return replace(
        ensemble, particles=tuple(_with_solvent(particle, settings) for particle in ensemble.particles)
    )


def body_from_settings(name: str, settings: ParticleSettings) -> Particle:
    """The built-in body of that name with the size, density and seed of the settings."""
    return named_body(
        name, settings.diameter_A, settings.density, settings.axis_ratio, settings.n_blobs, settings.seed
    )


def _on_path(
    names: tuple[str, ...],
    ends: tuple[Particle, ...],
    fractions: tuple[float, ...],
    weights: NDArray[np.float64],
) -> Ensemble:
    match ends:
        case (Structure() as first, Structure() as second):
            return ensemble_on_path(first, second, fractions, weights)
    raise SettingsError(
        f"particle.path_fractions needs two structures of atoms, got {', '.join(names)}.",
        "Set particle.structure and particle.conformations to the files of the two ends of the path.",
    )


def _open_one(name: str, settings: ParticleSettings) -> Particle:
    if name in BODY_NAMES:
        return body_from_settings(name, settings)
    try:
        structure = open_structure(
            name,
            assembly=None if settings.assembly.lower() in ("none", "") else settings.assembly,
            altloc=settings.altloc,
            model=settings.model,
            waters=settings.waters,
            hydrogens=settings.hydrogens,
            hetero_atoms=settings.hetero_atoms,
            occupancies=settings.occupancies,
            b_factors=settings.b_factors,
        )
    except FileError as error:
        if Path(name).exists() or Path(name).suffix:
            raise
        near = get_close_matches(name, BODY_NAMES, n=1)
        raise SettingsError(
            f"particle.structure '{name}' is neither a file nor a built-in body.",
            f"Did you mean '{near[0]}'?" if near else f"Built in are {', '.join(BODY_NAMES)}.",
        ) from error
    return structure if settings.anomalous else structure.without_anomalous_terms()


def _with_solvent(particle: Particle, settings: ParticleSettings) -> Particle:
    """The particle with the wanted solvent contrast and hydration layer; an error for analytic bodies."""
    wanted = settings.solvent_contrast or settings.hydration_A > 0
    if not wanted:
        return particle
    if not isinstance(particle, Structure):
        raise SettingsError(
            "solvent_contrast and hydration_A need a structure of atoms, not a built-in body.",
            "Give a PDB or mmCIF file as particle.structure, or set the density of the body to its contrast.",
        )
    result = particle
    if settings.solvent_contrast:
        result = in_solvent(particle, settings.solvent_density, settings.displaced_volume_scale)
    if settings.hydration_A > 0:
        usual = _LAYER_CONTRAST if settings.solvent_contrast else WATER_DENSITY
        result = result + hydration_layer(particle, settings.hydration_A, settings.hydration_density or usual)
    return result
