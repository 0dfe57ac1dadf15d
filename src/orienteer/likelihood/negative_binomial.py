"""Photon counts that scatter more than Poisson: the model's own error is part of the likelihood."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from orienteer.compute.arrays import Array, array_namespace
from orienteer.errors import OrienteerError
from orienteer.likelihood.base import sum_log_factorials, sum_over_scored
from orienteer.likelihood.counts import Counts, slopes_around_reference
from orienteer.likelihood.expected import Form, SplitOperand, expand_slices
from orienteer.likelihood.frames import FrameBatch
from orienteer.likelihood.pixel_model import PixelModel
from orienteer.likelihood.score_law import ScoreLaw


@dataclass(frozen=True, eq=False)
class NegativeBinomial(Counts):
    """Poisson counts whose mean has a relative variance eps^2: var K = lambda + eps^2 lambda^2, r = 1/eps^2.

    ln P = sum_p K ln(lambda / (r + lambda)) - r ln(1 + lambda/r) + ln Gamma(K + r) - ln Gamma(r) - ln K!.
    Bright pixels, where the model is wrong by more than shot noise, no longer outvote the rest.

    dispersion : (P,) float32, eps^2 of each pixel (see :mod:`orienteer.likelihood.dispersion`); 0 is Poisson.

    All formulas use eps^2, never r, and ln(1 + eps^2 lambda) is computed separately from ln(lambda), so that
    small dispersions lose no digits.  K ln r is the same for all rows and belongs to ``frame_constant``.
    """

    pixels: PixelModel
    dispersion: Array
    _offset_centres: dict[float, float] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        xp = array_namespace(self.pixels.correction)
        dispersion = xp.asarray(self.dispersion, dtype=xp.float32)
        if dispersion.shape != (self.pixels.n_pixels,):
            raise OrienteerError(
                f"dispersion of shape {dispersion.shape} does not fit {self.pixels.n_pixels} pixels."
            )
        if not bool(xp.all((dispersion >= 0) & xp.isfinite(dispersion))):
            raise OrienteerError("dispersion has values that are negative or not numbers.")
        object.__setattr__(self, "dispersion", dispersion)

    @property
    def needs_fluence_groups(self) -> bool:
        """True: the weight of a pixel depends on how bright the frame is."""
        return True

    @cached_property
    def centre(self) -> Array:
        """(S,) float32, the operand of the reference model at unit fluence."""
        xp = array_namespace(self.pixels.correction)
        expected = self._reference(1.0)
        return (xp.log(expected) - xp.log1p(expected * self._scored_dispersion)).astype(xp.float32)

    def expand(
        self, slices: Array, fluence: float = 1.0, by_pixel: bool = False, form: Form = "single"
    ) -> tuple[Array | SplitOperand, Array]:
        """Operand ln(lambda / (1 + eps^2 lambda)) - centre, offsets sum r ln(1 + lambda / r)."""
        return expand_slices(
            "negative_binomial",
            slices,
            self.pixels,
            self.centre,
            self.dispersion,
            float(fluence),
            by_pixel,
            form,
        )

    def score_law(self, offsets: Array, frames: FrameBatch, fluence: float | Array = 1.0) -> ScoreLaw:
        """The scores as a formula of the product."""
        lit = (frames.scored_photons > 0) * 1.0
        return ScoreLaw("linear", offsets - self._offset_centre(float(fluence)), lit)

    def fluence_slopes(self, slices: Array, fluence: float = 1.0, by_pixel: bool = False) -> Array | None:
        """sum_p v_p phi s_kp, less that of the reference, (T,) float64."""
        return slopes_around_reference(self.pixels, slices, fluence, by_pixel, self._scored_dispersion)

    def frame_constant(self, frames: FrameBatch, fluence: float | Array = 1.0) -> Array:
        """K.centre + sum ln [Gamma(K + r) / (Gamma(r) r^K K!)], less the offset of the reference."""
        return (
            sum_over_scored(frames, self.centre)
            - sum_log_factorials(frames, self._scored_dispersion)
            - self._offset_centre(float(fluence))
        )

    @cached_property
    def _scored_dispersion(self) -> Array:
        return self.pixels.scored(self.dispersion)

    def _reference(self, fluence: float) -> Array:
        pixels = self.pixels
        return fluence * pixels.scored(pixels.safe_reference) + pixels.scored(pixels.background_or_zero)

    def _offset_centre(self, fluence: float) -> float:
        """The offset of the reference model at a fluence; cached, because every tile of a group needs it."""
        if fluence not in self._offset_centres:
            xp = array_namespace(self.pixels.correction)
            expected = self._reference(fluence)
            y = xp.maximum(expected * self._scored_dispersion, np.finfo(np.float64).tiny)
            self._offset_centres[fluence] = float(xp.sum(expected * (xp.log1p(y) / y)))
        return self._offset_centres[fluence]
