"""The ``[emc]`` section: all that can be said about a reconstruction, with defaults that need no word."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from orienteer.orientation.point_group import PointGroup
from orienteer.settings.section import Section

_MOST_MODELS = 64
# A symmetry that nobody gives is looked for.
AUTO_SYMMETRY = "auto"


def _auto_in_either_case(value: Any) -> Any:
    """As names of point groups are read."""
    return AUTO_SYMMETRY if isinstance(value, str) and value.strip().lower() == AUTO_SYMMETRY else value


def given_group(symmetry: str) -> PointGroup:
    """The point group by the name that a setting gives; C1 where it is yet to be looked for."""
    return PointGroup("C1" if symmetry == AUTO_SYMMETRY else symmetry)


def _number_of_models(value: Any) -> Any:
    """Refuse with one sentence what is neither a number nor the word."""
    is_number = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _MOST_MODELS
    if not is_number and value != "auto":
        raise ValueError(f"should be a whole number from 1 to {_MOST_MODELS}, or auto")
    return value


def _mesh(value: Any) -> Any:
    """Refuse with one sentence what is no mesh of ranks."""
    if value != "auto" and not (isinstance(value, str) and re.fullmatch(r"[1-9]\d*x[1-9]\d*", value)):
        raise ValueError("should be auto, or ranks that share orientations times groups of them, such as 2x2")
    return value


class EmcSettings(Section):
    """Blind reconstruction of the 3D intensity by expansion, maximisation and compression.

    >>> settings = EmcSettings(symmetry="I", resolution_A=20)
    >>> settings
    EmcSettings(symmetry='I', resolution_A=20.0)
    >>> settings.halves
    True
    """

    may_change: ClassVar[frozenset[str]] = frozenset(
        {"iterations", "memory_GiB", "dragonfly_output", "mesh", "half_sets", "balance"}
    )
    earlier_names: ClassVar[Mapping[str, str]] = {
        "known_poses_file": "known_orientations_file",
        "known_poses_column": "known_orientations_column",
    }

    @property
    def given_group(self) -> PointGroup:
        """The symmetry that was given; C1 where it is yet to be looked for."""
        return given_group(self.symmetry)

    likelihood: Literal["negative-binomial", "poisson", "gaussian"] = Field(
        default="negative-binomial",
        description="Noise: photon counting with the model's own error, photon counting alone, or Gaussian.",
    )
    models: Annotated[int | Literal["auto"], BeforeValidator(_number_of_models)] = Field(
        default=1,
        description="Models reconstructed at once, one per state; auto: as many as the data tell apart.",
    )
    junk_classes: int = Field(default=0, ge=0, le=16, description="Classes of frames that show no particle.")
    reject_junk: bool = Field(
        default=True, description="Leave out frames that show something else than the particle, or nothing."
    )
    symmetry: Annotated[str, BeforeValidator(_auto_in_either_case)] = Field(
        default="auto",
        description="Of the particle: C1, Cn, Dn, T, O or I; auto: EMC looks for I, O and T, else C1.",
    )
    fluence: Literal["auto", "estimate", "constant"] = Field(
        default="auto",
        description="Whether every frame has its own fluence; auto looks at the photon numbers.",
    )
    diameter_A: float = Field(
        default=0.0,
        ge=0,
        le=1e6,
        description="Largest extent of the particle; 0: from the size of the speckles.",
    )
    resolution_A: float = Field(
        default=0.0, ge=0, le=1e6, description="Full-period resolution to stop at; 0: the edge of the data."
    )
    level: int = Field(
        default=0, ge=0, le=60, description="Finest grid of orientations (600-cell divisions); 0: as needed."
    )
    oversampling: float = Field(
        default=4.0,
        ge=1.5,
        le=8,
        description="Voxels across a speckle; fewer blur what bright frames show, more take memory and time.",
    )
    starts: int = Field(
        default=0,
        ge=0,
        le=100,
        description="Starts; the likeliest goes on.  0: up to 4 if symmetric or nearly round, else 1.",
    )
    halves: bool = Field(
        default=True, description="Orient each half of the frames by the model of the other half."
    )
    refine: bool = Field(
        default=True, description="At the end, let poses leave the grid of orientations, and merge again."
    )
    sentinels: float = Field(
        default=0.05, ge=0, lt=0.5, description="Share of frames that only watch, and are never merged."
    )
    kept_mass: float = Field(
        default=0.999, gt=0, le=1, description="Share of each frame's probability that is merged."
    )
    background_file: str = Field(
        default="", description="HDF5 or NumPy file of expected background photons per pixel and shot."
    )
    background: Literal["given", "estimate"] = Field(
        default="given",
        description="That of the file, if there is one; or from the frames: what never turns or darkens.",
    )
    known_orientations_file: str = Field(
        default="",
        description="HDF5 file of event_id and quaternion: frames that it names are not searched for.",
    )
    known_orientations_column: str = Field(
        default="",
        description="Column of the data with known quaternions, such as truth_orientation; no search then.",
    )
    iterations: int = Field(default=400, ge=1, le=100000, description="Most iterations of a run.")
    memory_GiB: float = Field(
        default=0.0,
        ge=0,
        le=1e5,
        description="Memory that scores and slices may take; 0: a share of what is there.",
    )
    dragonfly_output: bool = Field(
        default=False, description="Write a file of Dragonfly's kind after every iteration, too."
    )
    mesh: Annotated[str, BeforeValidator(_mesh)] = Field(
        default="auto",
        description="Ranks that share orientations x groups that share frames (2x3); auto: a group per node.",
    )
    half_sets: Literal["auto", "apart", "together"] = Field(
        default="auto",
        description="Whether each half of the frames has half of the ranks; auto: if groups divide evenly.",
    )
    balance: Literal["dynamic", "static"] = Field(
        default="dynamic",
        description="Whether ranks take work as they become free, so that slow ones do less, or equal parts.",
    )
    deterministic: bool = Field(
        default=False,
        description="Same bits on a GPU in every run, and on ranks of one group on the CPU.",
    )
