"""Products of frames with tiles of rows: the one costly step of scoring and of merging.

Two implementations of one contract.  ``DenseProduct`` is a matrix product over all pixels, right for bright
frames; ``SparseProduct`` visits lit pixels only, right where most pixels are dark.
"""

from typing import Protocol

from orienteer.compute.arrays import Array
from orienteer.likelihood.dense_product import DenseProduct, Precision
from orienteer.likelihood.expected import Form
from orienteer.likelihood.frames import FrameBatch
from orienteer.likelihood.listed import listed_merge, listed_scores
from orienteer.likelihood.photon_lists import PhotonLists
from orienteer.likelihood.sparse_product import SparseProduct

__all__ = [
    "DenseProduct", "PhotonLists", "Precision", "Product", "SparseProduct", "listed_merge", "listed_scores",
    "product_of",
]  # fmt: skip


class Product(Protocol):
    """What scoring and merging need from the frames.  T rows (orientations), D frames, P pixels.

    by_pixel : the layout of operands and merges: (pixels, rows) when true, (rows, pixels) when false.
    operand_form : form in which operands need no further conversion; see ``Likelihood.expand``.
    may_take_one_term : whether an operand may have one float16 term only, if that is accurate enough.
    """

    frames: FrameBatch
    by_pixel: bool

    @property
    def operand_form(self) -> Form:
        """The form in which operands need no further conversion."""
        ...

    @property
    def may_take_one_term(self) -> bool:
        """Whether operands may have one float16 term only, if that is accurate enough."""
        ...

    def scores(self, operand: Array, out: Array | None = None) -> Array:
        """(T, D) float32: sum over the scored pixels p of operand[k, p] * K[d, p]."""

    def merge(self, weights: Array, *, largest: float | None = None) -> Array:
        """Sum over the frames d of weights[k, d] * K[d, p] at all P pixels: float32, in this layout.

        largest : upper bound of the weights; None if unknown.
        """

    def missing_scores(self, operand: Array) -> Array:
        """(T, D) float32: sum of operand[k, p] over the scored pixels that frame d forbids."""

    def missing_merge(self, weights: Array) -> Array:
        """Sum of weights[k, d] over the frames d that forbid pixel p, in the product's layout."""


def product_of(frames: FrameBatch, precision: Precision = "split") -> Product:
    """The product that fits the layout of the frames."""
    if frames.photons is not None:
        return SparseProduct(frames)
    return DenseProduct(frames, precision)
