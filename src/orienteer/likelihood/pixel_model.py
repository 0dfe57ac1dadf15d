"""What is known of the pixels before any frame is looked at: correction, a reference model, background."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from orienteer.compute.arrays import Array, array_namespace
from orienteer.errors import OrienteerError
from orienteer.likelihood.weighted_sums import sum_over_frames, sum_over_rows

# A pixel whose whole shell is empty still gets _EMPTY_SHELL times the mean reference, so that no logarithm
# is infinite, and at least _SMALLEST, a normal number in float32.
_EMPTY_SHELL = 1e-6
_SMALLEST = 1e-30


@dataclass(frozen=True, eq=False)
class PixelModel:
    """The pixel list as a likelihood sees it; expected photons are fluence * correction * W + background.

    correction : (P,) float32, solid angle * polarisation * efficiency, mean 1.
    reference : (P,) float32, expected photons at unit fluence of a model without directions (correction times
        the radial mean of the model), the same for all rows and models.  Operands are relative to it, so that
        low precision is enough.  An empty voxel counts as ``floor_fraction`` of it, so that a photon there
        costs a finite number of nats.
    n_scored : number of pixels that decide orientations, the first of the list; the rest are only merged.
    background : (P,) float32 photons per shot, or None.
    """

    correction: Array
    reference: Array
    n_scored: int
    background: Array | None = None
    floor_fraction: float = 1e-3

    def __post_init__(self) -> None:
        xp = array_namespace(self.correction)
        P = len(self.correction)
        if not 0 < self.n_scored <= P:
            raise OrienteerError(
                f"{self.n_scored} of {P} pixels are left to decide orientations.",
                "Check the mask: pixels of level 0 are used for orientation.",
            )
        for name in ("correction", "reference", "background"):
            array = getattr(self, name)
            if array is None:
                continue
            array = xp.asarray(array, dtype=xp.float32)
            if array.shape != (P,) or not bool(xp.all((array >= 0) & xp.isfinite(array))):
                raise OrienteerError(
                    f"'{name}' of the pixels has shape {array.shape} for {P} pixels, or values that are "
                    "negative or not numbers."
                )
            object.__setattr__(self, name, array)

    @property
    def n_pixels(self) -> int:
        """P, pixels of the list."""
        return len(self.correction)

    @cached_property
    def safe_reference(self) -> Array:
        """(P,) float32: the reference, positive everywhere."""
        xp = array_namespace(self.reference)
        least = max(_EMPTY_SHELL * float(xp.mean(self.reference, dtype=xp.float64)), _SMALLEST)
        return xp.maximum(self.reference, xp.float32(least))

    @cached_property
    def floor(self) -> Array:
        """(P,) float32: the least expected signal at unit fluence."""
        xp = array_namespace(self.reference)
        return xp.maximum(self.safe_reference * xp.float32(self.floor_fraction), xp.float32(_SMALLEST))

    @cached_property
    def background_or_zero(self) -> Array:
        """(P,) float32."""
        return (
            array_namespace(self.correction).zeros_like(self.correction)
            if self.background is None
            else self.background
        )

    def scored(self, values: Array) -> Array:
        """The values (P, ...) of the scored pixels, as float64."""
        return values[: self.n_scored].astype(np.float64)

    def scored_signal(self, slices: Array, weights: Array | None = None, by_pixel: bool = False) -> Array:
        """Signal of each row at unit fluence over the scored pixels, (T,) float64: sum_p weights_p c_p W_kp.

        weights : (S,), or None for 1 everywhere, which gives the expected photons u_k at fluence 1.
        """
        per_pixel = self.scored(self.correction)
        per_pixel = per_pixel if weights is None else per_pixel * weights
        if by_pixel:
            return sum_over_rows(slices[: self.n_scored], per_pixel)
        return sum_over_frames(slices[:, : self.n_scored], per_pixel)

    def signal(self, slices: Array, by_pixel: bool) -> Array:
        """Signal at unit fluence, (T, P) or (P, T) float32: correction times slices, at least the floor."""
        xp = array_namespace(slices)
        shape = (-1, 1) if by_pixel else (1, -1)
        # fmax: a sample that is not a number counts as empty.
        fmax = np.fmax if isinstance(slices, np.ndarray) else xp.fmax
        return fmax(slices * self.correction.reshape(shape), self.floor.reshape(shape))
