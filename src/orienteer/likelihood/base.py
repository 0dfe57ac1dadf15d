"""The contract of a likelihood: how well each row (a pose of a model) explains each frame.

Letters: k row, p pixel, d frame; T rows of a tile, P pixels of the list, S of them scored, D frames.
One matrix product C[k, d] = sum_p operand[k, p] K[d, p] carries the frames; all else is per row or frame::

    operand, offsets = likelihood.expand(slices, fluence, by_pixel)
    scores = likelihood.scores(product.scores(operand), offsets, frames, fluence=fluence)
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, array_namespace, import_cupy, is_on_gpu
from orienteer.likelihood.expected import Form, SplitOperand
from orienteer.likelihood.frames import FrameBatch
from orienteer.likelihood.pixel_model import PixelModel
from orienteer.likelihood.score_law import ScoreLaw
from orienteer.source.sparse_photons import SparsePhotons, repeat_each


class MergeWeights(NamedTuple):
    """What the frames of a tile of rows deposit into the merge.

    numerator : (T, D) float32, multiplies the photon counts.
    row : (T,) float64, weight of each row in the denominator (times the correction of each pixel).
    denominator : (T, D) float32, whose sum over frames is ``row``: the merge of the missing pixels with it is
        taken back from the denominator.  None where no frame has missing pixels.
    largest : no number of the numerator is larger; None: unknown.
    """

    numerator: Array
    row: Array
    denominator: Array | None
    largest: float | None = None


class MergeLaw(NamedTuple):
    """How responsibilities P_kd, scores Q_kd and offsets o_k make :class:`MergeWeights`, in formulas.

    For frames without missing pixels and background::

        numerator_kd = P_kd ((o_k + slope Q_kd) inverse_d)^1/2          slope 0: P_kd
        row_k = sum_d P_kd row_factor_d

    row_factor, inverse : (D,).   largest : no number of the numerator is larger; None: unknown.
    """

    row_factor: Array
    slope: float = 0.0
    inverse: Array | None = None
    largest: float | None = 1.0


class Likelihood(Protocol):
    """Scores of frames against slices, and what the frames deposit into the merge.

    Arrays live on the device of ``pixels``.  ``fluence`` is one number for a group of similar frames where
    ``needs_fluence_groups``; otherwise each frame has its own, (D,), and one expansion serves them all.
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
        """Whether :meth:`merge_weights` needs the product of the scores."""
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
        """Log-likelihood of each row for each frame, (T, D) float32, less the constant of the frame.

        slopes, frame_fluence : from :meth:`fluence_slopes`, and each frame's own fluence (D,): scores of a
            group are then moved from the fluence of the group to that of the frame.

        A frame without scored photons scores 0 for all rows.  ``out`` may be ``product``.
        """
        ...

    def score_law(self, offsets: Array, frames: FrameBatch, fluence: float | Array = 1.0) -> ScoreLaw:
        """The same as a formula, for frames without missing pixels and of the fluence of their group."""
        ...

    def fluence_slopes(self, slices: Array, fluence: float = 1.0, by_pixel: bool = False) -> Array | None:
        """How fast the score of each row falls as the fluence grows from that of the group, (T,) float64.

        In units of nats per relative change, and only the part that differs between rows.  None where
        fluences are exact without it.
        """
        ...

    def frame_constant(self, frames: FrameBatch, fluence: float | Array = 1.0) -> Array:
        """(D,) float64: with it, a score is a true log-likelihood, -ln K! included."""
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
        """What responsibilities (T, D) deposit.

        A likelihood that needs it is given the ``product`` (T, D) of the scores, or ``scores`` (T, D) and
        their ``offsets`` (T,), in which it lies where no pixel is missing.

        largest_offset : no offset of any row is larger, so that bounds are known without a look at the tile.
        """
        ...

    def merge_law(
        self, frames: FrameBatch, fluence: float | Array = 1.0, largest_offset: float | None = None
    ) -> MergeLaw:
        """The same in formulas, for frames without missing pixels and background."""
        ...


def fluence_of_frames(fluence: float | Array, frames: FrameBatch) -> Array:
    """The fluence of each frame, (D,) float64, from one number or one for each."""
    xp = array_namespace(frames.scored_photons)
    return xp.broadcast_to(xp.asarray(fluence, dtype=xp.float64), (len(frames),))


def fluence_steps(frames: FrameBatch, group: float, frame_fluence: Array | None) -> Array | None:
    """Each frame's fluence over that of its group, less 1, (D,) float64; 0 for dark frames.

    At most 1, a factor of 2: a frame further off is in the wrong group, and the step is of first order.
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
    e = None if dispersion is None else xp.asarray(dispersion)[:S].astype(xp.float64)

    def term(count: Array, e_p: Array | None) -> Array:
        if is_on_gpu(count):
            return _log_factorial_kernel()(count, 0.0 if e_p is None else e_p)
        from scipy.special import gammaln

        count = np.maximum(count, 0.0)
        value = gammaln(count + 1.0)
        return value if e_p is None else value - log_rising(count, e_p)

    if frames.photons is not None:
        return _sum_lists(frames.photons, lambda p, count: term(count, None if e is None else e[p]), S)
    return _sum_dense(frames.dense, lambda counts: xp.sum(term(counts, e), axis=1), S)


def missing_scored(frames: FrameBatch) -> Array:
    """Scored pixels that each frame forbids, (D,) float64."""
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


_CHUNK = 1 << 22  # numbers of a dense batch that are handled at once in float64


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


def log_rising(count: NDArray[Any], dispersion: NDArray[Any]) -> NDArray[np.float64]:
    """sum_{i<K} ln(1 + i e), also where r = 1/e is so large that a difference of gammas is all noise."""
    from scipy.special import gammaln

    e, K = dispersion, count
    small = K * e < 1e-3
    r = 1.0 / np.where(small, 1.0, e)
    by_gamma = gammaln(K + r) - gammaln(r) - K * np.log(r)
    pairs = K * (K - 1.0) / 2.0
    by_series = e * pairs * (1.0 - e * (2.0 * K - 1.0) / 6.0 + e * e * pairs / 3.0)
    return np.asarray(np.where(small, by_series, by_gamma))
