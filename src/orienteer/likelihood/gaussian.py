"""The Gaussian model with a fluence for every pair of row and frame (Ekeberg, Engblom and Liu, 2014)."""

from dataclasses import dataclass
from functools import cached_property
from math import frexp, log, pi, sqrt

from orienteer.compute.arrays import Array, array_namespace
from orienteer.errors import OrienteerError
from orienteer.likelihood.base import MergeLaw, MergeWeights, missing_scored
from orienteer.likelihood.expected import (
    Form,
    SplitOperand,
    expand_slices,
    gaussian_numerators,
    gaussian_scores,
)
from orienteer.likelihood.frames import FrameBatch
from orienteer.likelihood.pixel_model import PixelModel
from orienteer.likelihood.score_law import ScoreLaw
from orienteer.likelihood.weighted_sums import sum_over_frames


@dataclass(frozen=True, eq=False)
class Gaussian:
    """Q_kd = -sum_p (K_dp / phi_kd - s_kp)^2 / (2 sigma^2), s = c W, with phi_kd = |K_d|^2 / (s_k . K_d).

    Inserting phi_kd gives Q_kd = -(|s_k|^2 - (s_k . K_d)^2 / |K_d|^2) / (2 sigma^2): one matrix product and
    two lists of norms give scores and fluences.  The two terms nearly cancel at the true pose, so the product
    needs more digits than in the other likelihoods: use float32 or two float16 terms.

    sigma : noise in the units of W.
    """

    pixels: PixelModel
    sigma: float

    def __post_init__(self) -> None:
        if not self.sigma > 0:
            raise OrienteerError(f"sigma = {self.sigma} must be positive.")
        if self.pixels.background is not None:
            raise OrienteerError(
                "the Gaussian likelihood has no term for a background.",
                "Subtract it from the frames, or use the Poisson likelihood.",
            )

    @property
    def needs_fluence_groups(self) -> bool:
        """False: the best fluence of each row and frame is part of the score."""
        return False

    @property
    def needs_product_to_merge(self) -> bool:
        """True: the fluence of each pair of row and frame follows from the product."""
        return True

    @cached_property
    def operand_scale(self) -> float:
        """The operand is s times this power of two, such that float16 holds 1000 times the reference."""
        xp = array_namespace(self.pixels.reference)
        _, exponent = frexp(float(xp.max(self.pixels.safe_reference)))
        return 2.0 ** (6 - exponent)

    def expand(
        self, slices: Array, fluence: float = 1.0, by_pixel: bool = False, form: Form = "single"
    ) -> tuple[Array | SplitOperand, Array]:
        """Operand operand_scale * s and offsets |s_k|^2; the fluence is not used."""
        unused = self.pixels.correction
        return expand_slices(
            "gaussian", slices, self.pixels, unused, unused, self.operand_scale, by_pixel, form
        )

    def expand_missing(self, slices: Array, fluence: float = 1.0, by_pixel: bool = False) -> Array:
        """s^2 of each scored pixel, float32 (T, S) or (S, T)."""
        return self.expand(slices, fluence, by_pixel, "offset")[0]

    def scores(
        self,
        product: Array,
        offsets: Array,
        frames: FrameBatch,
        *,
        fluence: float | Array = 1.0,
        missing: Array | None = None,
        slopes: Array | None = None,
        frame_fluence: Array | None = None,
        out: Array | None = None,
    ) -> Array:
        """-(|s_k|^2 - (s_k . K_d)^2 / |K_d|^2) / (2 sigma^2), (T, D) float32."""
        out = array_namespace(product).empty_like(product) if out is None else out
        per_frame = self.score_law(offsets, frames).per_frame
        return gaussian_scores(product, offsets, per_frame, missing, self.sigma, out)

    def score_law(self, offsets: Array, frames: FrameBatch, fluence: float | Array = 1.0) -> ScoreLaw:
        """The scores as a formula of the product."""
        per_frame = frames.inverse_squares / self.operand_scale**2
        return ScoreLaw("gaussian", offsets, per_frame, 0.5 / self.sigma**2)

    def fluence_slopes(self, slices: Array, fluence: float = 1.0, by_pixel: bool = False) -> Array | None:
        """None: the best fluence of each row and frame is part of the score."""
        return None

    def frame_constant(self, frames: FrameBatch, fluence: float | Array = 1.0) -> Array:
        """-n/2 ln(2 pi sigma^2), n the scored pixels that the frame does not forbid."""
        n = self.pixels.n_scored - missing_scored(frames)
        return -0.5 * n * log(2 * pi * self.sigma**2)

    def merge_weights(
        self,
        responsibilities: Array,
        frames: FrameBatch,
        *,
        fluence: float | Array = 1.0,
        product: Array | None = None,
        scores: Array | None = None,
        offsets: Array | None = None,
        largest_offset: float | None = None,
    ) -> MergeWeights:
        """Numerator P / phi_kd, denominator P; needs the product of the scores, or the scores and offsets."""
        xp = array_namespace(responsibilities)
        largest = _largest_inverse_fluence(frames, largest_offset)
        row = sum_over_frames(responsibilities, xp.ones(len(frames)))
        if scores is not None and offsets is not None:
            numerator = self._numerators_of_scores(responsibilities, frames, scores, offsets)
            return MergeWeights(numerator, row, None, largest)
        if product is None:
            raise ValueError("the Gaussian merge needs the product of the scores")
        denominator = None if frames.missing is None else responsibilities
        numerator = responsibilities * self._inverse_fluence(product, frames)
        return MergeWeights(numerator, row, denominator, largest)

    def merge_law(
        self, frames: FrameBatch, fluence: float | Array = 1.0, largest_offset: float | None = None
    ) -> MergeLaw:
        """Numerator P / phi_kd, denominator P; see :meth:`_numerators_of_scores`."""
        inverse = frames.inverse_squares
        ones = array_namespace(inverse).ones_like(inverse)
        largest = _largest_inverse_fluence(frames, largest_offset)
        return MergeLaw(ones, 2 * self.sigma**2, inverse, largest)

    def _numerators_of_scores(
        self, responsibilities: Array, frames: FrameBatch, scores: Array, offsets: Array
    ) -> Array:
        """P / phi_kd from scores (T, D), offsets (T,): 1 / phi_kd = (|s_k|^2 + 2 sigma^2 Q_kd)^1/2 / |K_d|.

        This saves the M-step a second matrix product; an error of Q is small compared with |s|^2 / sigma^2.
        Only for frames without missing pixels.
        """
        inverse = frames.inverse_squares
        return gaussian_numerators(responsibilities, scores, offsets, inverse, self.sigma)

    def _inverse_fluence(self, product: Array, frames: FrameBatch) -> Array:
        """1 / phi_kd, (T, D) float32; 0 for a frame without light."""
        xp = array_namespace(product)
        return product * (frames.inverse_squares / self.operand_scale).astype(xp.float32)


def _largest_inverse_fluence(frames: FrameBatch, largest_offset: float | None) -> float | None:
    """1 / phi_kd = s_k . K_d / |K_d|^2 is at most |s_k| / |K_d|."""
    return None if largest_offset is None else sqrt(largest_offset / frames.least_square)
