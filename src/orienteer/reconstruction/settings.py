"""The ``[emc]`` section: all settings of a reconstruction, with defaults that suit most data."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from orienteer.errors import SettingsError
from orienteer.orientation.point_group import PointGroup
from orienteer.settings.section import Section

_MOST_MODELS = 64
# The symmetry is not given, and EMC looks for one.
AUTO_SYMMETRY = "auto"


def _symmetry(value: Any) -> Any:
    """The name of a point group as this package writes it, or "auto"; refuse any other text."""
    if not isinstance(value, str):
        return value
    if value.strip().lower() == AUTO_SYMMETRY:
        return AUTO_SYMMETRY
    try:
        return str(PointGroup(value))
    except SettingsError as error:
        raise ValueError(f"{error.message} {error.hint} With {AUTO_SYMMETRY} it is looked for") from None


def given_group(symmetry: str) -> PointGroup:
    """The point group that a setting names; C1 if EMC is to look for one."""
    return PointGroup("C1" if symmetry == AUTO_SYMMETRY else symmetry)


def _number_of_models(value: Any) -> Any:
    """Refuse with one sentence a value that is neither a number nor "auto"."""
    is_number = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _MOST_MODELS
    if not is_number and value != "auto":
        raise ValueError(f"should be a whole number from 1 to {_MOST_MODELS}, or auto")
    return value


def _mesh(value: Any) -> Any:
    """Refuse with one sentence a value that is not a mesh of ranks."""
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
        """The symmetry that was given; C1 if EMC is to look for one."""
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
        default=True, description="Leave out frames that show something other than the particle, or nothing."
    )
    symmetry: Annotated[str, BeforeValidator(_symmetry)] = Field(
        default="auto",
        description="Of the particle: C1, Cn, Dn, T, O or I; auto: I, O or T if EMC finds it, else C1.",
    )
    fluence: Literal["auto", "estimate", "constant"] = Field(
        default="auto",
        description="Whether every frame has its own fluence; auto: decided from the photon numbers.",
    )
    diameter_A: float = Field(
        default=0.0,
        ge=0,
        le=1e6,
        description="Largest extent of the particle; 0: measured from the frames.",
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
        default=0.05, ge=0, lt=0.5, description="Share of frames that are oriented, but never merged."
    )
    kept_mass: float = Field(
        default=0.999, gt=0, le=1, description="Share of each frame's probability that is merged."
    )
    background_file: str = Field(
        default="", description="HDF5 or NumPy file of expected background photons per pixel and shot."
    )
    background: Literal["given", "estimate"] = Field(
        default="given",
        description="given: background_file, if any; estimate: what in the frames never turns or darkens.",
    )
    known_orientations_file: str = Field(
        default="",
        description="HDF5 file of event_id and quaternion: frames in it keep these poses, without a search.",
    )
    known_orientations_column: str = Field(
        default="",
        description="Column of the data with quaternions to use without a search, such as truth_orientation.",
    )
    iterations: int = Field(default=400, ge=1, le=100000, description="Most iterations of a run.")
    memory_GiB: float = Field(
        default=0.0,
        ge=0,
        le=1e5,
        description="Memory that scores and slices may take; 0: a quarter of what is free.",
    )
    dragonfly_output: bool = Field(
        default=False, description="Also write a file in Dragonfly's format after every iteration."
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
        description="dynamic: ranks take work when they are free, so slow ones do less; static: equal parts.",
    )
    deterministic: bool = Field(
        default=False,
        description="Same bits on a GPU in every run, and on ranks of one group on the CPU.",
    )
