"""Volume: a 3D array with the size and position of its voxels."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

import orienteer
from orienteer.compute.arrays import Array, to_numpy
from orienteer.compute.words import counted
from orienteer.errors import OrienteerError

Space: TypeAlias = Literal["real", "reciprocal"]
UNIT = {"real": "A", "reciprocal": "1/A"}


@dataclass(frozen=True, eq=False, repr=False)
class Volume:
    """A density or an intensity on a regular grid.

    Voxel [i, j, k] lies at ``origin + voxel_size * (i, j, k)``; the unit is A in real space and 1/A in
    reciprocal space.  Unless an origin is given, the centre voxel n // 2 lies at zero.

    values : (n_x, n_y, n_z) float32, indexed [x, y, z].  NaN means "never measured"; infinities are refused.
    voxel_size : edge of a voxel, one number or three (x, y, z); stored as a tuple of three.
    space : "real" or "reciprocal".
    origin : position of voxel [0, 0, 0]; stored as a tuple of three.
    name : what it shows, in a few words.
    metadata : anything else worth keeping, by name: texts, numbers, flags.

    >>> volume = Volume(np.zeros((4, 4, 5)), voxel_size=2.0)
    >>> volume.axes()[2]
    array([-4., -2.,  0.,  2.,  4.])
    >>> volume
    <Volume 4 x 4 x 5, real space, voxel 2 A>
    """

    values: Array
    voxel_size: Any
    space: Space = "real"
    origin: Any = None
    name: str = ""
    metadata: Mapping[str, str | int | float | bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.space not in UNIT:
            raise OrienteerError(f"the space of a volume is 'real' or 'reciprocal', not {self.space!r}.")
        values = _as_float32(self.values)
        voxel_size = _three_numbers(self.voxel_size, "voxel size")
        if min(voxel_size) <= 0:
            raise OrienteerError(f"the voxel size {voxel_size} is not positive.")
        origin = self.origin
        if origin is None:
            origin = [-step * (n // 2) for step, n in zip(voxel_size, values.shape, strict=True)]
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "voxel_size", voxel_size)
        object.__setattr__(self, "origin", _three_numbers(origin, "origin"))
        object.__setattr__(self, "metadata", dict(self.metadata))

    def __repr__(self) -> str:
        size = " x ".join(str(n) for n in self.shape)
        steps = sorted(set(self.voxel_size)) if len(set(self.voxel_size)) == 1 else self.voxel_size
        step = " x ".join(f"{s:.6g}" for s in steps)
        name = f" '{self.name}'" if self.name else ""
        missing = f", {counted(self.n_missing, 'voxel')} missing" if self.n_missing else ""
        return f"<Volume{name} {size}, {self.space} space, voxel {step} {self.unit}{missing}>"

    @property
    def shape(self) -> tuple[int, int, int]:
        """Voxels along x, y and z."""
        n_x, n_y, n_z = self.values.shape
        return int(n_x), int(n_y), int(n_z)

    @property
    def unit(self) -> str:
        """Unit of voxel size, origin and axes: "A" or "1/A"."""
        return UNIT[self.space]

    @property
    def centre_index(self) -> tuple[int, int, int]:
        """Index of the centre voxel, n // 2 along each axis."""
        n_x, n_y, n_z = self.shape
        return n_x // 2, n_y // 2, n_z // 2

    @property
    def n_missing(self) -> int:
        """Voxels that hold NaN: nothing was measured there."""
        return int((self.values != self.values).sum())

    def axes(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Positions of the voxels along x, y and z, in A or 1/A."""
        x, y, z = (
            start + step * np.arange(n, dtype=np.float64)
            for start, step, n in zip(self.origin, self.voxel_size, self.shape, strict=True)
        )
        return x, y, z

    def show(self, title: str = "") -> Any:
        """The picture of its slices through the centre."""
        return orienteer.show(self, title)  # not imported from here: the module of pictures imports this one

    def with_values(self, values: Array) -> "Volume":
        """The same grid with other values."""
        if values.shape != self.shape:
            raise OrienteerError(f"values of shape {values.shape} do not fit a volume of shape {self.shape}.")
        return replace(self, values=values)


def _three_numbers(given: Any, what: str) -> tuple[float, float, float]:
    """One number or three, as three finite floats."""
    try:
        x, y, z = np.broadcast_to(to_numpy(given).astype(np.float64), (3,)).tolist()
    except (TypeError, ValueError) as error:
        raise OrienteerError(f"the {what} must be one number or three, not {given!r}.") from error
    if not np.isfinite([x, y, z]).all():
        raise OrienteerError(f"the {what} {(x, y, z)} is not finite.")
    return x, y, z


def _as_float32(given: Array) -> Array:
    """The values as a 3D float32 array on their device; infinities are refused."""
    values = given if hasattr(given, "dtype") else np.asarray(given)
    if values.ndim != 3 or 0 in values.shape:
        raise OrienteerError(
            f"a volume has three axes (x, y, z) and at least one voxel, not shape {values.shape}."
        )
    if values.dtype.kind not in "biuf":
        raise OrienteerError(
            f"a volume holds real numbers, not {values.dtype}.", "Take the modulus or real part first."
        )
    if values.dtype != np.float32:
        with np.errstate(over="ignore"):  # what overflows becomes infinite, and is refused below
            values = values.astype(np.float32)
    n_infinite = int((abs(values) == np.inf).sum())
    if n_infinite:
        raise OrienteerError(
            f"{n_infinite} voxels are infinite or too large for float32.",
            "Set them to NaN if nothing is known there, or scale the map.",
        )
    return values
