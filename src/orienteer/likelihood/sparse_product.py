"""Products that visit lit pixels only."""

from functools import cached_property

import numpy as np

from orienteer.compute.arrays import Array, array_namespace
from orienteer.errors import OrienteerError
from orienteer.likelihood.expected import Form
from orienteer.likelihood.frames import FrameBatch
from orienteer.likelihood.panels import Panels
from orienteer.likelihood.photon_lists import Blocks, PhotonLists


class SparseProduct:
    """The contract of :class:`orienteer.likelihood.product.Product` over lists of photons.

    Operands are (n_scored or more, T) float32, merges (P, T).

    >>> from orienteer.source.patterns import Patterns
    >>> frames = FrameBatch.prepare(Patterns(np.array([[0, 2, 1]])), np.arange(3), 3, "cpu", "sparse")
    >>> SparseProduct(frames).scores(np.array([[1, 10], [2, 20], [3, 30]], dtype=np.float32))
    array([[ 7.],
           [70.]], dtype=float32)
    """

    by_pixel = True
    may_take_one_term = False

    def __init__(self, frames: FrameBatch) -> None:
        if frames.photons is None:
            raise OrienteerError("a sparse product needs frames as lists of photons.", "Use a DenseProduct.")
        self.frames = frames
        self._photons = PhotonLists(frames.photons, frames.n_scored)

    def scores(self, operand: Array, out: Array | None = None) -> Array:
        """(T, D) float32: sum over the scored pixels p of operand[p, k] * K[d, p]."""
        return self._photons.scores(operand, out)

    @property
    def operand_form(self) -> Form:
        """Lists of photons take float32."""
        return "single"

    def merge(self, weights: Array, out: Array | None = None, *, largest: float | None = None) -> Array:
        """(P, T) float32: sum over the frames d of weights[k, d] * K[d, p]; weights are (T, D)."""
        return self._photons.merge(weights, out)

    def missing_scores(self, operand: Array) -> Array:
        """(T, D) float32: sum of operand[p, k] over the scored pixels p that frame d forbids."""
        if self._missing is None:
            shape = operand.shape[1], len(self.frames)
            return array_namespace(operand).zeros(shape, dtype=np.float32)
        return self._missing.scores(operand)

    def missing_merge(self, weights: Array) -> Array:
        """(P, T) float32: sum of weights[k, d] over the frames d that forbid pixel p."""
        if self._missing is None:
            shape = self.frames.n_pixels, len(weights)
            return array_namespace(weights).zeros(shape, dtype=np.float32)
        return self._missing.merge(weights)

    def fill_listed_scores(self, operand: Array | Panels, blocks: Blocks, values: Array) -> None:
        """See :func:`orienteer.likelihood.listed.listed_scores`."""
        self._photons.listed_scores(operand, blocks, values)

    def add_listed_merge(self, values: Array, blocks: Blocks, out: Array) -> None:
        """See :func:`orienteer.likelihood.listed.listed_merge`."""
        self._photons.listed_merge(values, blocks, out)

    @cached_property
    def _missing(self) -> PhotonLists | None:
        missing = self.frames.missing
        return None if missing is None else PhotonLists(missing, self.frames.n_scored)
