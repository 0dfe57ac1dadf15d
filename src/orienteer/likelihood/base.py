"""The contract of a likelihood: how well each row (a pose of a model) explains each frame.

Letters: k row, p pixel, d frame; T rows of a tile, P pixels of the list, S of them scored, D frames.
The photons enter through one matrix product, C[k, d] = sum_p operand[k, p] K[d, p]; everything else is one
number per row or per frame::

    operand, offsets = likelihood.expand(slices, fluence, by_pixel)
    scores = likelihood.scores(product.scores(operand), offsets, frames, fluence=fluence)
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from orienteer.compute.arrays import Array, array_namespace, import_cupy
from orienteer.likelihood.expected import Form, SplitOperand
from orienteer.likelihood.frames import FrameBatch
from orienteer.likelihood.pixel_model import PixelModel
from orienteer.likelihood.score_law import ScoreLaw
from orienteer.source.sparse_photons import SparsePhotons, repeat_each


class MergeWeights(NamedTuple):
    """What the frames of a tile of rows deposit into the merge.

    numerator : (T, D) float32, multiplies the photon counts.
    row : (T,) float64, weight of each row in the denominator (times the correction of each pixel).
    denominator : (T, D) float32; its sum over the frames is ``row``.  Its merge over the missing pixels of
        the frames is subtracted from the denominator.  None if no frame has missing pixels.
    largest : upper bound of the numerator; None if unknown.
    """

    numerator: Array
    row: Array
    denominator: Array | None
    largest: float | None = None


class MergeLaw(NamedTuple):
    """Formulas that turn responsibilities P_kd, scores Q_kd and offsets o_k into :class:`MergeWeights`.

    For frames without missing pixels and background::

        numerator_kd = P_kd ((o_k + slope Q_kd) inverse_d)^1/2          slope 0: P_kd
        row_k = sum_d P_kd row_factor_d

    row_factor, inverse : (D,).   largest : upper bound of the numerator; None if unknown.
    """

    row_factor: Array
    slope: float = 0.0
    inverse: Array | None = None
    largest: float | None = 1.0


class Likelihood(Protocol):
    """Scores of frames against slices, and what the frames deposit into the merge.

    Arrays live on the device of ``pixels``.  If ``needs_fluence_groups``, ``fluence`` is one number for a
    group of frames of similar fluence; otherwise it is (D,), one per frame, and one expansion serves all.
    """

    @property
    def pixels(self) -> PixelModel:
        """The pixel list with its corrections and background."""
        ...

    @property
    def needs_fluence_groups(self) -> bool:
        """Whether the operand depends on the fluence: frames must then come in groups of similar fluence."""
        ...

    @property
    def needs_product_to_merge(self) -> bool:
        """Whether :meth:`merge_weights` needs the product that the scores were made from."""
        ...

    def expand(
        self, slices: Array, fluence: float = 1.0, by_pixel: bool = False, form: Form = "single"
    ) -> tuple[Array | SplitOperand, Array]:
        """Operand (T, S) and offsets (T,) float64 of slices (T, P); ``by_pixel``: (S, T) and (P, T)."""
        ...

    def expand_missing(self, slices: Array, fluence: float = 1.0, by_pixel: bool = False) -> Array:
        """Each pixel's own share of the offset, float32 (T, S) or (S, T).

        Its product with the frames' missing pixels, (T, D), is the ``missing`` of :meth:`scores`.
        """
        ...

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
        """Log-likelihood of each row for each frame, (T, D) float32, without :meth:`frame_constant`.

        slopes, frame_fluence : from :meth:`fluence_slopes`, and each frame's own fluence (D,).  With both,
            scores are corrected to first order from the fluence of the group to that of each frame.

        A frame without scored photons scores 0 for all rows.  ``out`` may be ``product``.
        """
        ...

    def score_law(self, offsets: Array, frames: FrameBatch, fluence: float | Array = 1.0) -> ScoreLaw:
        """Scores as a formula of the product, for frames without missing pixels at their group's fluence."""
        ...

    def fluence_slopes(self, slices: Array, fluence: float = 1.0, by_pixel: bool = False) -> Array | None:
        """Rate at which the score of each row falls as the fluence grows from the group's, (T,) float64.

        In nats per relative change of the fluence; only the part that differs between rows.  None if scores
        need no such correction.
        """
        ...

    def frame_constant(self, frames: FrameBatch, fluence: float | Array = 1.0) -> Array:
        """(D,) float64: add it to a score for the full log-likelihood, which includes -ln K!."""
        ...

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
        """The merge weights that responsibilities (T, D) give.

        If ``needs_product_to_merge``, pass the ``product`` (T, D) that the scores were made from; or, if no
        pixel is missing, ``scores`` (T, D) and their ``offsets`` (T,), from which it follows.

        largest_offset : upper bound of the offsets of all rows; gives ``largest`` without reading the tile.
        """
        ...

    def merge_law(
        self, frames: FrameBatch, fluence: float | Array = 1.0, largest_offset: float | None = None
    ) -> MergeLaw:
        """The merge weights as formulas, for frames without missing pixels and background."""
        ...


def fluence_of_frames(fluence: float | Array, frames: FrameBatch) -> Array:
    """The fluence of each frame, (D,) float64, from one number for all or one for each."""
    xp = array_namespace(frames.scored_photons)
    return xp.broadcast_to(xp.asarray(fluence, dtype=xp.float64), (len(frames),))


def fluence_steps(frames: FrameBatch, group: float, frame_fluence: Array | None) -> Array | None:
    """Relative difference of each frame's fluence from that of its group, (D,) float64; 0 for dark frames.

    At most 1, a factor of 2, because the correction is of first order; a frame further off is in the wrong
    group.
    """
    if frame_fluence is None:
        return None
    xp = array_namespace(frames.scored_photons)
    phi = fluence_of_frames(frame_fluence, frames)
    usable = (frames.scored_photons > 0) & (phi > 0)
    return xp.minimum(xp.where(usable, phi, group) / group - 1.0, 1.0)


def sum_over_scored(frames: FrameBatch, per_pixel: Array) -> Array:
    """Sum over scored pixels of count times value, (D,) float64; per_pixel (S,) or longer."""
    xp = array_namespace(frames.scored_photons)
    S = frames.n_scored
    values = xp.asarray(per_pixel)[:S].astype(xp.float64)
    if frames.photons is not None:
        return _sum_lists(frames.photons, lambda pixel, count: count * values[pixel], S)
    return _sum_dense(frames.dense, lambda counts: counts @ values, S)


def sum_log_factorials(frames: FrameBatch, dispersion: Array | None = None) -> Array:
    """Sum over scored pixels of ln K! - sum_{i<K} ln(1 + i * dispersion), (D,) float64.

    The second term, with a dispersion (S,) = 1/r, is ln of Gamma(K + r) / (Gamma(r) r^K).
    """
    xp = array_namespace(frames.scored_photons)
    S = frames.n_scored
    e = xp.zeros(S) if dispersion is None else xp.asarray(dispersion)[:S].astype(xp.float64)
    photons = frames.photons
    if frames.is_on_gpu:
        term = _log_factorial_kernel()
        if photons is not None:
            return _sum_lists(photons, lambda pixel, count: term(count, e[pixel]), S)
        return _sum_dense(frames.dense, lambda counts: xp.sum(term(counts, e), axis=1), S)
    from orienteer.likelihood import _log_factorials_numba as twin

    out = np.empty(len(frames))
    if photons is not None:
        twin.sum_lists(photons.start, photons.pixel, photons.count, e, out)
    else:
        twin.sum_dense(frames.dense, e, out)
    return out


def missing_scored(frames: FrameBatch) -> Array:
    """Number of scored pixels that each frame forbids, (D,) float64."""
    xp = array_namespace(frames.scored_photons)
    if frames.missing is None:
        return xp.zeros(len(frames), dtype=xp.float64)
    return _sum_lists(frames.missing, lambda pixel, count: count, frames.n_scored)


@cache
def _log_factorial_kernel() -> Any:
    """ln K! - sum_{i<K} ln(1 + i e) on the GPU: most pixels hold no photon and need no logarithm."""
    cupy: Any = import_cupy()
    return cupy.ElementwiseKernel(
        "float64 K, float64 e",
        "float64 out",
        """
        out = 0.0;
        if (K > 0.0) {
            const double pairs = K * (K - 1.0) / 2.0, r = 1.0 / e;
            out = lgamma(K + 1.0);
            if (K * e < 1e-3) out -= e * pairs * (1.0 - e * (2.0 * K - 1.0) / 6.0 + e * e * pairs / 3.0);
            else out -= lgamma(K + r) - lgamma(r) - K * log(r);
        }
        """,
        "log_factorial_less_rising",
    )


_CHUNK = 1 << 22  # numbers of a dense batch that are converted to float64 at a time


def _sum_dense(dense: Array, of_counts: Callable[[Array], Array], n_scored: int) -> Array:
    xp = array_namespace(dense)
    out = xp.empty(len(dense), dtype=xp.float64)
    step = max(1, _CHUNK // max(1, n_scored))
    for first in range(0, len(dense), step):
        chunk = slice(first, first + step)
        out[chunk] = of_counts(dense[chunk, :n_scored].astype(xp.float64))
    return out


def _sum_lists(photons: SparsePhotons, of_entries: Callable[[Array, Array], Array], n_scored: int) -> Array:
    xp = array_namespace(photons.start)
    frame = repeat_each(xp.arange(len(photons)), photons.start[1:] - photons.start[:-1])
    scored = photons.pixel < n_scored
    terms = of_entries(photons.pixel[scored], photons.count[scored].astype(xp.float64))
    return xp.bincount(frame[scored], weights=terms, minlength=len(photons))
