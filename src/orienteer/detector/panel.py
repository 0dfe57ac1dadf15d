"""Panel: a flat rectangle of pixels, where it stands and where its pixels lie in the stored frame."""

from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orienteer.errors import OrienteerError

# Far beyond every instrument; these limits keep a damaged geometry file from asking for absurd arrays.
LARGEST_N_PIXELS = 1 << 25
LARGEST_LENGTH_M = 1e5
SMALLEST_STEP_M = 1e-9


@dataclass(frozen=True, eq=False, init=False)
class Panel:
    """A flat rectangle of ``shape`` pixels.

    The centre of pixel (slow i, fast j) is ``origin_m + (i + 1/2) slow_m + (j + 1/2) fast_m``, and its value
    is entry ``first_pixel + i slow_stride + j fast_stride`` of the flattened frame.

    name : unique in a detector, without "/".
    origin_m : (3,) outer corner of pixel (0, 0) in the laboratory frame.
    fast_m, slow_m : (3,) steps to the next pixel along the fast and the slow axis; they need not be square.
    shape : (n_slow, n_fast).
    first_pixel : flat index of pixel (0, 0) in the stored frame.
    slow_stride, fast_stride : steps of the flat index; by default those of a panel stored on its own.
    groups : the groups of panels it moves with, outermost first, such as ("all", "q0").

    >>> panel = Panel("p0", (-0.001, -0.001, 0.1), fast_m=(0.001, 0, 0), slow_m=(0, 0.001, 0), shape=(2, 2))
    >>> panel.pixel_centres_m()[0, 0]
    array([-0.0005, -0.0005,  0.1   ])
    """

    name: str
    origin_m: NDArray[np.float64]
    fast_m: NDArray[np.float64]
    slow_m: NDArray[np.float64]
    shape: tuple[int, int]
    first_pixel: int
    slow_stride: int
    fast_stride: int
    groups: tuple[str, ...]

    def __init__(
        self,
        name: str,
        origin_m: ArrayLike,
        fast_m: ArrayLike,
        slow_m: ArrayLike,
        shape: tuple[int, int],
        first_pixel: int = 0,
        slow_stride: int | None = None,
        fast_stride: int = 1,
        groups: tuple[str, ...] = (),
    ) -> None:
        keep: Any = lambda field, value: object.__setattr__(self, field, value)  # noqa: E731
        keep("name", str(name))
        for field, value in (("origin_m", origin_m), ("fast_m", fast_m), ("slow_m", slow_m)):
            keep(field, _vector(value, f"{field} of panel '{name}'"))
        keep("shape", tuple(int(n) for n in shape))
        keep("first_pixel", int(first_pixel))
        keep("slow_stride", int(self.shape[-1] if slow_stride is None else slow_stride))
        keep("fast_stride", int(fast_stride))
        keep("groups", tuple(str(group) for group in groups))
        self._check()

    def _check(self) -> None:
        if not self.name or "/" in self.name or any(not group or "/" in group for group in self.groups):
            raise OrienteerError(
                f"panel '{self.name}' in groups {self.groups}: names must not be empty or contain '/'."
            )
        if len(self.shape) != 2 or min(self.shape) < 1 or prod(self.shape) > LARGEST_N_PIXELS:
            raise OrienteerError(
                f"panel '{self.name}' has shape {self.shape}; expected (n_slow, n_fast), each at least 1 and "
                f"together at most {LARGEST_N_PIXELS}."
            )
        if self.first_pixel < 0 or self.slow_stride < 1 or self.fast_stride < 1:
            raise OrienteerError(
                f"panel '{self.name}' starts at pixel {self.first_pixel} with strides "
                f"({self.slow_stride}, {self.fast_stride}) in the frame; expected start >= 0, strides >= 1."
            )
        steps = np.linalg.norm([self.fast_m, self.slow_m], axis=1)
        area = float(np.linalg.norm(self.area_vector_m2))
        if steps.min() < SMALLEST_STEP_M or area < 1e-3 * float(steps.prod()):
            raise OrienteerError(
                f"panel '{self.name}' has no area, steps {self.fast_m.tolist()} {self.slow_m.tolist()} m.",
                "Both steps must be longer than 1 nm, and they must not be parallel.",
            )
        if self._holds_the_sample():
            raise OrienteerError(
                f"panel '{self.name}' passes through the sample at the origin.",
                "Check the distance: it is given in metres from the sample, along +z.",
            )

    def _holds_the_sample(self) -> bool:
        """Whether the sample lies in the rectangle, so that directions to the pixels have no meaning."""
        steps = np.stack([self.slow_m, self.fast_m], axis=1)
        place, *_ = np.linalg.lstsq(steps, -self.origin_m, rcond=None)
        distance_m = float(np.linalg.norm(self.origin_m + steps @ place))
        inside = bool(np.all(place >= 0) and np.all(place <= np.array(self.shape)))
        return inside and distance_m < 1e-3 * float(np.linalg.norm(self.fast_m))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Panel):
            return NotImplemented
        return self._plain() == other._plain() and all(
            np.array_equal(mine, theirs)
            for mine, theirs in zip(self._vectors(), other._vectors(), strict=True)
        )

    def __hash__(self) -> int:
        return hash(self._plain())

    def _plain(self) -> tuple[Any, ...]:
        return (self.name, self.shape, self.first_pixel, self.slow_stride, self.fast_stride, self.groups)

    def _vectors(self) -> tuple[NDArray[np.float64], ...]:
        return (self.origin_m, self.fast_m, self.slow_m)

    @property
    def n_pixels(self) -> int:
        """Pixels of the panel."""
        return prod(self.shape)

    @property
    def last_pixel(self) -> int:
        """The largest flat index that the panel claims in the stored frame."""
        return (
            self.first_pixel + (self.shape[0] - 1) * self.slow_stride + (self.shape[1] - 1) * self.fast_stride
        )

    @property
    def area_vector_m2(self) -> NDArray[np.float64]:
        """(3,) normal of the panel; its length is the area of one pixel."""
        return np.cross(self.fast_m, self.slow_m)

    def frame_indices(self) -> NDArray[np.int64]:
        """(n_slow, n_fast) flat index in the stored frame of each pixel."""
        slow = self.first_pixel + self.slow_stride * np.arange(self.shape[0], dtype=np.int64)
        return slow[:, None] + self.fast_stride * np.arange(self.shape[1], dtype=np.int64)

    def pixel_centres_m(self) -> NDArray[np.float64]:
        """(n_slow, n_fast, 3) centres of the pixels."""
        slow = (np.arange(self.shape[0]) + 0.5)[:, None, None] * self.slow_m
        fast = (np.arange(self.shape[1]) + 0.5)[:, None] * self.fast_m
        return self.origin_m + slow + fast

    def corners_m(self) -> NDArray[np.float64]:
        """(4, 3) outer corners, in order around the panel."""
        slow, fast = self.shape[0] * self.slow_m, self.shape[1] * self.fast_m
        return self.origin_m + np.stack([0 * slow, fast, fast + slow, slow])

    def belongs_to(self, group: str) -> bool:
        """Whether the panel has this name or is in the group of this name."""
        return group == self.name or group in self.groups

    def moved(self, shift_m: ArrayLike) -> "Panel":
        """The panel shifted by (3,) metres."""
        return replace(self, origin_m=self.origin_m + _vector(shift_m, "shift_m"))

    def rotated(self, matrix: NDArray[Any], about_m: NDArray[Any]) -> "Panel":
        """The panel turned by a rotation matrix (3, 3) about a point (3,)."""
        return replace(
            self,
            origin_m=about_m + matrix @ (self.origin_m - about_m),
            fast_m=matrix @ self.fast_m,
            slow_m=matrix @ self.slow_m,
        )


def _vector(value: ArrayLike, what: str) -> NDArray[np.float64]:
    try:
        vector = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        vector = np.empty(0)
    if vector.shape != (3,) or not np.all(np.abs(vector) <= LARGEST_LENGTH_M):
        raise OrienteerError(f"{what} is {value!r}; expected three finite lengths in metres.")
    vector.setflags(write=False)
    return vector
