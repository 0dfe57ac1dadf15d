"""Scores of pairs of row and frame as a formula of their product."""

from math import sqrt
from typing import Literal, NamedTuple

from orienteer.compute.arrays import Array
from orienteer.likelihood.expected import gaussian_scores, linear_scores


class ScoreLaw(NamedTuple):
    """How a product C_kd becomes a score, if no pixel is missing::

        linear      C_kd - per_frame_d per_row_k
        gaussian    number (C_kd^2 per_frame_d - per_row_k), 0 if per_frame_d is 0

    per_row : (T,) float64.   per_frame : (D,) float64.
    """

    kind: Literal["linear", "gaussian"]
    per_row: Array
    per_frame: Array
    number: float = 1.0

    def scores(self, product: Array, out: Array) -> Array:
        """Scores (T, D) float32 of products (T, D) float32; ``out`` may be ``product``."""
        if self.kind == "linear":
            return linear_scores(product, self.per_row, self.per_frame, out)
        return gaussian_scores(product, self.per_row, self.per_frame, None, sqrt(0.5 / self.number), out)
