"""Points sorted into patches: neighbours in space are stored together, however the detector orders them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import (
    Array,
    DeviceName,
    array_namespace,
    choose_device,
    is_on_gpu,
    to_device,
    to_numpy,
)
from orienteer.errors import OrienteerError

PATCH = 64  # points of a patch


@dataclass(frozen=True)
class PointPatches:
    """Points of a detector, sorted such that 64 consecutive ones fill a small patch.

    A patch touches few cache lines of the volume, and the ball around it shows which slabs it can reach.
    Sorting ten thousand points takes milliseconds: sort once, and pass the patches instead of the points.

    order : (P,) int32, the number of the point at each place.
    coordinates : (3, P) float32, x, y and z of the points in that order, in voxels from the centre.
    centres, radii : (H, 3) and (H,) float32, a ball around each patch; always NumPy.
    """

    order: Array
    coordinates: Array
    centres: NDArray[np.float32]
    radii: NDArray[np.float32]

    @classmethod
    def of(cls, points: Array, device: DeviceName | None = None) -> "PointPatches":
        """Sort points (P, 3); the result lies on ``device``, by default where the points are.

        >>> two_heaps = np.repeat([[0, 0, 0], [90, 0, 0]], 64, axis=0)[np.arange(128) * 65 % 128]
        >>> PointPatches.of(two_heaps).radii
        array([0., 0.], dtype=float32)
        """
        _check_shape(points)
        if device is None:
            device = "cuda" if is_on_gpu(points) else "cpu"
        plain = np.asarray(to_numpy(points), dtype=np.float32)
        order = _order_in_patches(plain).astype(np.int32)
        plain = plain[order]
        centres, radii = _balls(plain)
        coordinates = np.ascontiguousarray(plain.T)
        return cls(to_device(order, device), to_device(coordinates, device), centres, radii)

    @classmethod
    def as_given(cls, points: Array) -> "PointPatches":
        """Points (P, 3) in their own order, on their own device; the balls are unknown (no radii)."""
        _check_shape(points)
        xp = array_namespace(points)
        nothing = np.zeros((0, 3), np.float32)
        coordinates = xp.ascontiguousarray(xp.asarray(points, dtype=xp.float32).T)
        return cls(xp.arange(len(points), dtype=xp.int32), coordinates, nothing, nothing[:, 0])

    def __len__(self) -> int:
        return int(self.order.shape[0])

    @cached_property
    def given(self) -> Array:
        """(3, P) the coordinates in the order in which the points were given."""
        given = array_namespace(self.order).empty_like(self.coordinates)
        given[:, self.order] = self.coordinates
        return given

    def with_balls(self) -> "PointPatches":
        """The same points with balls; sorts points that are still in the given order."""
        return self if len(self.radii) * PATCH >= len(self) else PointPatches.of(self.given.T)

    def to(self, device: DeviceName) -> "PointPatches":
        """The same patches in the memory of a device."""
        if (choose_device(device) == "cuda") == is_on_gpu(self.order):
            return self
        order, coordinates = to_device(self.order, device), to_device(self.coordinates, device)
        return PointPatches(order, coordinates, self.centres, self.radii)


def _check_shape(points: Array) -> None:
    if points.ndim != 2 or points.shape[1] != 3:
        raise OrienteerError(f"points have the shape {points.shape}; they must be (P, 3).")


def _order_in_patches(points: NDArray[np.float32]) -> NDArray[np.int64]:
    """Indices of the points (P, 3), patch after patch, by repeated halving along the longest side."""
    finite = np.clip(np.nan_to_num(points), -1e6, 1e6)
    waiting, patches = [np.arange(len(points))], []
    while waiting:
        members = waiting.pop()
        if len(members) <= PATCH:
            patches.append(np.sort(members))
            continue
        axis = np.argmax(np.ptp(finite[members], axis=0))
        whole_patches = (len(members) + PATCH - 1) // PATCH
        half = whole_patches // 2 * PATCH
        parted = members[np.argpartition(finite[members, axis], half)]
        waiting += [parted[half:], parted[:half]]
    return np.concatenate(patches)


def _balls(points: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Centre (H, 3) and radius (H,) of a ball around each patch; infinite if a point is not finite."""
    if len(points) == 0:
        return np.zeros((0, 3), np.float32), np.zeros(0, np.float32)
    starts = np.arange(0, len(points), PATCH)
    with np.errstate(invalid="ignore", over="ignore"):
        wide = points.astype(np.float64)
        middle = (np.minimum.reduceat(wide, starts) + np.maximum.reduceat(wide, starts)) / 2
        centres = np.where(np.isfinite(middle), middle, 0).astype(np.float32)
        away = wide - np.repeat(centres, PATCH, axis=0)[: len(points)]
        radii = np.sqrt(np.maximum.reduceat(np.sum(away**2, axis=1), starts))
    return centres, np.where(np.isnan(radii), np.inf, radii).astype(np.float32)
