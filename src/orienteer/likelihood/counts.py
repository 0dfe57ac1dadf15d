"""What all likelihoods of photon counts share: scores linear in the product, means over the fluence."""

from abc import ABC, abstractmethod

from orienteer.compute.arrays import Array, array_namespace
from orienteer.likelihood.base import MergeLaw, MergeWeights, fluence_of_frames, fluence_steps
from orienteer.likelihood.expected import Form, SplitOperand, linear_scores
from orienteer.likelihood.frames import FrameBatch
from orienteer.likelihood.pixel_model import PixelModel
from orienteer.likelihood.score_law import ScoreLaw
from orienteer.likelihood.weighted_sums import sum_over_frames


class Counts(ABC):
    """The part of a :class:`~orienteer.likelihood.base.Likelihood` that all laws of counts have in common."""

    @property
    @abstractmethod
    def needs_fluence_groups(self) -> bool:
        """Whether expanded slices hold at one fluence only."""

    @property
    def needs_product_to_merge(self) -> bool:
        """False: frames are merged at their own fluence."""
        return False

    @abstractmethod
    def expand(
        self, slices: Array, fluence: float = 1.0, by_pixel: bool = False, form: Form = "single"
    ) -> tuple[Array | SplitOperand, Array]:
        """Operand and offsets of slices."""

    @abstractmethod
    def score_law(self, offsets: Array, frames: FrameBatch, fluence: float | Array = 1.0) -> ScoreLaw:
        """Scores as a formula of the product."""

    def expand_missing(self, slices: Array, fluence: float = 1.0, by_pixel: bool = False) -> Array:
        """Each scored pixel's share of the offset, float32 (T, S) or (S, T)."""
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
        """product - phi_d (offset_k - offset of the reference), (T, D) float32.

        If ``needs_fluence_groups``, product and offsets contain phi already.
        """
        out = array_namespace(product).empty_like(product) if out is None else out
        law, steps = self.score_law(offsets, frames, fluence), None
        if self.needs_fluence_groups:
            steps = fluence_steps(frames, float(fluence), frame_fluence)
        return linear_scores(product, law.per_row, law.per_frame, out, missing, slopes, steps)

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
        """The mean of counts over fluence: numerator P, denominator P phi."""
        phi = fluence_of_frames(fluence, frames)
        denominator = None
        if frames.missing is not None:
            denominator = responsibilities * phi.astype(array_namespace(phi).float32)
        return MergeWeights(responsibilities, sum_over_frames(responsibilities, phi), denominator, 1.0)

    def merge_law(
        self, frames: FrameBatch, fluence: float | Array = 1.0, largest_offset: float | None = None
    ) -> MergeLaw:
        """Numerator P, denominator P phi."""
        return MergeLaw(fluence_of_frames(fluence, frames))


def slopes_around_reference(
    pixels: PixelModel, slices: Array, fluence: float, by_pixel: bool, dispersion: Array | float = 0.0
) -> Array:
    """sum_p v_p phi (s_kp - reference_p), (T,) float64, v = share of the signal / (1 + dispersion lambda).

    The derivative of ln P with respect to ln(phi) is sum_p v (K - lambda).  If K is near lambda, it differs
    between rows by -v phi times the difference of s, so the weights v of the reference serve all rows.
    """
    signal = fluence * pixels.scored(pixels.safe_reference)
    expected = signal + pixels.scored(pixels.background_or_zero)
    weights = fluence * (signal / expected) / (1.0 + dispersion * expected)
    return pixels.scored_signal(slices, weights, by_pixel) - (weights @ pixels.scored(pixels.safe_reference))
