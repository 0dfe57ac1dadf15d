"""Photon counting: independent Poisson counts with known mean."""

from dataclasses import dataclass
from functools import cached_property

from orienteer.compute.arrays import Array, array_namespace
from orienteer.likelihood.base import fluence_of_frames, sum_log_factorials, sum_over_scored
from orienteer.likelihood.counts import Counts, slopes_around_reference
from orienteer.likelihood.expected import Form, SplitOperand, expand_slices
from orienteer.likelihood.frames import FrameBatch
from orienteer.likelihood.pixel_model import PixelModel
from orienteer.likelihood.score_law import ScoreLaw


@dataclass(frozen=True, eq=False)
class Poisson(Counts):
    """ln P = sum_p K ln(lambda) - lambda - ln K!,  lambda = fluence * c W + b.

    Without background the fluence drops out of the product (K ln phi is a constant of the frame) and the
    offset is phi_d u_k with u_k = sum c W, so one expansion at unit fluence is exact for every frame.
    """

    pixels: PixelModel

    @property
    def needs_fluence_groups(self) -> bool:
        """True with a background, because ln(phi s + b) then depends on the fluence."""
        return self.pixels.background is not None

    @cached_property
    def centre(self) -> Array:
        """(S,) float32, ln of the reference model, which is subtracted from the operand."""
        xp = array_namespace(self.pixels.correction)
        reference = self.pixels.scored(self.pixels.safe_reference)
        return xp.log(reference + self.pixels.scored(self.pixels.background_or_zero)).astype(xp.float32)

    @cached_property
    def _reference_sums(self) -> tuple[float, float]:
        """Photons of reference model and background on the scored pixels."""
        xp, pixels = array_namespace(self.pixels.correction), self.pixels
        return (
            float(xp.sum(pixels.scored(pixels.safe_reference))),
            float(xp.sum(pixels.scored(pixels.background_or_zero))),
        )

    def expand(
        self, slices: Array, fluence: float = 1.0, by_pixel: bool = False, form: Form = "single"
    ) -> tuple[Array | SplitOperand, Array]:
        """Operand ln(lambda) - centre, offsets u_k = sum lambda; without background at unit fluence."""
        unused = self.centre
        return expand_slices(
            "poisson", slices, self.pixels, self.centre, unused, self._expanded_at(fluence), by_pixel, form
        )

    def score_law(self, offsets: Array, frames: FrameBatch, fluence: float | Array = 1.0) -> ScoreLaw:
        """product - phi_d (u_k - u of the reference); with a background, u contains phi already."""
        lit = frames.scored_photons > 0
        if self.needs_fluence_groups:
            return ScoreLaw("linear", offsets - self._offset_centre(float(fluence)), lit * 1.0)
        factor = lit * fluence_of_frames(fluence, frames)
        return ScoreLaw("linear", offsets - self._offset_centre(1.0), factor)

    def fluence_slopes(self, slices: Array, fluence: float = 1.0, by_pixel: bool = False) -> Array | None:
        """sum_p v_p phi s_kp, less that of the reference; v is the signal's share of the expected photons."""
        if not self.needs_fluence_groups:
            return None
        return slopes_around_reference(self.pixels, slices, fluence, by_pixel)

    def frame_constant(self, frames: FrameBatch, fluence: float | Array = 1.0) -> Array:
        """K.centre - sum ln K!, less the offset of the reference; without background plus K ln phi."""
        xp = array_namespace(frames.scored_photons)
        phi = fluence_of_frames(fluence, frames)
        signal, background = self._reference_sums
        constant = (
            sum_over_scored(frames, self.centre) - sum_log_factorials(frames) - phi * signal - background
        )
        if self.needs_fluence_groups:
            return constant
        some = xp.where(frames.scored_photons > 0, phi, 1.0)  # a dark frame may have fluence 0
        return constant + frames.scored_photons * xp.log(some)

    def _expanded_at(self, fluence: float) -> float:
        return float(fluence) if self.needs_fluence_groups else 1.0

    def _offset_centre(self, fluence: float) -> float:
        signal, background = self._reference_sums
        return fluence * signal + background
