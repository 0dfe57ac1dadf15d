"""The sums that frames are merged into, and from which the next models are solved."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from orienteer.compute.arrays import Array, array_namespace
from orienteer.compute.exact_sums import in_parts
from orienteer.compute.ranks.comm import Comm
from orienteer.reconstruction.stopwatch import part
from orienteer.slicing.patches import PointPatches
from orienteer.slicing.trilinear import insert_slices

# Sums of the mass of a row are exact for up to this many frames.
_MOST_FRAMES = 2.0**20


@dataclass(eq=False)
class Deposit:
    """The sums of all merged frames: w = sum P phi c and k = sum P K, put back into the cube.

    sums : one accumulator of slices per model (``slicing.sums``).
    junk : (J, P, 2) float64 numerators and denominators of the junk classes, or None.
    row_mass : (rows,) float64, summed responsibilities of every row.
    models : (M, n, n, n) float32, the models that the frames correct: what their slices predict is subtracted
        from the merged photons, k - w S W.  None: nothing is subtracted.
    ratios : (M, P) float32 by which slices of each model are multiplied; None: by 1.
    """

    sums: list[Any]
    junk: Array | None
    row_mass: Array
    models: Array | None = None
    ratios: Array | None = None

    def add(
        self, model: int, points: PointPatches, matrices: Array, values: Array, row_weights: Array,
        pixel_weights: Array, by_pixel: bool, weights: Array | None = None,
    ) -> None:  # fmt: skip
        """Add merged frames to the sums of a model, where slices with these matrices (T, 3, 3) are taken.

        values : (T, P) or (P, T) float32 merged photons, overwritten; row_weights : (T,) summed fluences.
        weights : photons that the radial mean predicts, shaped like values, overwritten; needed if pixels are
            missing.  None: row_weights times pixel_weights (P,).
        """
        if self.ratios is not None:
            ratio = self.ratios[model]
            pixel_weights = pixel_weights * ratio
            if weights is not None:
                weights *= ratio[:, None] if by_pixel else ratio
        rows = row_weights.astype(np.float32)
        compared = None if self.models is None else self.models[model]
        with part("insert"):
            insert_slices(
                self.sums[model], points, matrices, values, rows, pixel_weights, by_pixel, weights, compared
            )

    def add_mass(self, rows: slice | Array, mass: Array) -> None:
        """Add the masses (T,) of rows, each row at most once; the order of batches does not change a bit."""
        self.row_mass[rows] += in_parts(mass, _MOST_FRAMES)

    def with_model(self, other: "Deposit", model: int) -> "Deposit":
        """This deposit with one more model, taken from another deposit."""
        own = slice(model, model + 1)
        return replace(
            self,
            sums=[*self.sums, other.sums[model]],
            models=_joined(self.models, None if other.models is None else other.models[own]),
            ratios=_joined(self.ratios, None if other.ratios is None else other.ratios[own]),
        )

    def of_model(self, model: int) -> "Deposit":
        """The deposit of one model alone."""
        own = slice(model, model + 1)
        return replace(
            self,
            sums=[self.sums[model]],
            models=None if self.models is None else self.models[own],
            ratios=None if self.ratios is None else self.ratios[own],
        )

    def add_junk(
        self, classes: slice | Array, values: Array, row_weights: Array, pixel_weights: Array, by_pixel: bool,
        weights: Array | None = None,
    ) -> None:  # fmt: skip
        """Add merged frames to junk classes; the other arguments are those of :meth:`add`.

        classes : (T,) each class at most once, or a slice of them.
        """
        assert self.junk is not None
        if weights is None:
            denominator = row_weights[:, None] * pixel_weights[None, :]
        else:
            denominator = weights.T if by_pixel else weights
        self.junk[classes, :, 0] += values.T if by_pixel else values
        self.junk[classes, :, 1] += denominator

    def join(self, comm: Comm) -> None:
        """Add up the deposits of all ranks; no frame may be added afterwards."""
        if comm.size == 1:
            return
        self.sums = [sums.joined(comm) for sums in self.sums]
        self.row_mass = comm.sum(self.row_mass)
        if self.junk is not None:
            self.junk = comm.sum(self.junk)


def _joined(first: Array | None, second: Array | None) -> Array | None:
    """Two arrays joined; None if one of them is None."""
    return None if first is None or second is None else array_namespace(first).concatenate([first, second])
