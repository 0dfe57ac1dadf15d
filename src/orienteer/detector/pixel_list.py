"""Pixels that are given one by one, with a position and an area each, instead of panels."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orienteer.detector.panel import LARGEST_LENGTH_M, LARGEST_N_PIXELS, Panel
from orienteer.errors import OrienteerError


@dataclass(frozen=True, eq=False, init=False)
class PixelList:
    """P pixels by position and area.

    positions_m : (P, 3) centres of the pixels in the laboratory frame.
    area_vectors_m2 : (P, 3) normal of each pixel, as long as its area; zero for values without a pixel.
    """

    positions_m: NDArray[np.float64]
    area_vectors_m2: NDArray[np.float64]

    def __init__(self, positions_m: ArrayLike, area_vectors_m2: ArrayLike) -> None:
        for field, value in (("positions_m", positions_m), ("area_vectors_m2", area_vectors_m2)):
            array = np.array(value, dtype=np.float64)
            array.setflags(write=False)
            object.__setattr__(self, field, array)
        shapes = self.positions_m.shape, self.area_vectors_m2.shape
        if shapes[0] != shapes[1] or len(shapes[0]) != 2 or shapes[0][1] != 3:
            raise OrienteerError(
                f"positions {shapes[0]} and area vectors {shapes[1]} must both be (n_pixels, 3)."
            )
        if not 0 < len(self.positions_m) <= LARGEST_N_PIXELS:
            raise OrienteerError(
                f"the list holds {len(self.positions_m)} pixels; expected 1 to {LARGEST_N_PIXELS}."
            )
        if not np.all(np.abs(self.positions_m) <= LARGEST_LENGTH_M):
            raise OrienteerError("pixel positions must be finite, in metres from the sample.")
        if not np.all(np.abs(self.area_vectors_m2) <= LARGEST_LENGTH_M**2):
            raise OrienteerError("pixel areas must be finite, in square metres.")
        at_sample = ~self.positions_m.any(axis=1)
        if at_sample.any():
            raise OrienteerError(
                f"pixel {int(np.argmax(at_sample))} lies at the origin, where the sample is.",
                "Give positions in metres from the sample, with the beam along +z.",
            )

    def __len__(self) -> int:
        return len(self.positions_m)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PixelList):
            return NotImplemented
        return np.array_equal(self.positions_m, other.positions_m) and np.array_equal(
            self.area_vectors_m2, other.area_vectors_m2
        )

    def __hash__(self) -> int:
        return hash(self.positions_m.shape)

    def moved(self, shift_m: NDArray[Any]) -> "PixelList":
        """The pixels shifted by (3,) metres."""
        return PixelList(self.positions_m + shift_m, self.area_vectors_m2)

    def rotated(self, matrix: NDArray[Any], about_m: NDArray[Any]) -> "PixelList":
        """The pixels turned by a rotation matrix (3, 3) about a point (3,)."""
        positions_m = about_m + (self.positions_m - about_m) @ matrix.T
        return PixelList(positions_m, self.area_vectors_m2 @ matrix.T)


def pixel_list(positions_m: ArrayLike, area_m2: ArrayLike) -> PixelList:
    """Pixels that stand square to the beam.

    positions_m : (P, 3) centres.
    area_m2 : scalar or (P,) area of the pixels; their normal is the beam axis.

    >>> len(pixel_list([[0, 0, 1.0], [1e-3, 0, 1.0]], 1e-6))
    2
    """
    positions = np.asarray(positions_m, dtype=np.float64)
    area_vectors = np.zeros_like(positions)
    if positions.ndim == 2 and positions.shape[1] == 3:
        area_vectors[:, 2] = area_m2
    return PixelList(positions, area_vectors)


def panel_through(positions_m: NDArray[Any], name: str, tolerance: float = 1e-6) -> Panel | None:
    """The flat panel with the given pixel centres, or None if they are not a regular grid.

    positions_m : (n_slow, n_fast, 3) centres, at least 2 x 2.
    tolerance : largest distance, in pixels, between a given centre and the panel's.
    """
    n_slow, n_fast = positions_m.shape[:2]
    if n_slow < 2 or n_fast < 2:
        return None
    # The outermost rows and columns give the steps with the smallest rounding error.
    slow_m = (positions_m[-1] - positions_m[0]).mean(axis=0) / (n_slow - 1)
    fast_m = (positions_m[:, -1] - positions_m[:, 0]).mean(axis=0) / (n_fast - 1)
    # Average small differences, not positions: rounding would shift the mean of many equal z.
    centre_m = positions_m[0, 0] + (positions_m - positions_m[0, 0]).reshape(-1, 3).mean(axis=0)
    origin_m = centre_m - n_slow / 2 * slow_m - n_fast / 2 * fast_m
    try:
        panel = Panel(name, origin_m, fast_m, slow_m, (n_slow, n_fast))
    except OrienteerError:
        return None
    largest_error_m = float(np.abs(panel.pixel_centres_m() - positions_m).max())
    smallest_step_m = min(np.linalg.norm(fast_m), np.linalg.norm(slow_m))
    return panel if largest_error_m <= tolerance * smallest_step_m else None
