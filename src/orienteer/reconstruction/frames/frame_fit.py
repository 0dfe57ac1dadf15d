"""Compare frames with the model at their likeliest poses: their fluence, and whether they show the particle.

A frame of something else, such as a droplet, still has a likeliest pose.  It is recognised because it fits
another description better than the model: either a pattern with the frame's own radial profile, whose pixels
scatter about it as speckles do, or one that deviates from the model by more than frames of the particle do.
The model explains a frame of the particle better, because it knows where the speckles are.  Every frame is
judged by the model of the other half, into which it was not merged.

Each description has several versions, and the right one is not known, so that its probability is their mean.
The likeliest version would have had the best of several chances, which matters most for faint frames.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from orienteer.compute.arrays import Array, array_namespace, is_on_gpu, to_numpy
from orienteer.compute.kernels import load_kernels
from orienteer.compute.ranks.comm import SERIAL, Comm, complete_rows, own_blocks
from orienteer.likelihood.fluence import solve_fluence
from orienteer.likelihood.frames import FrameBatch
from orienteer.orientation.quaternion import to_matrix
from orienteer.reconstruction.frames.batch import Batch
from orienteer.source.sparse_photons import dense_from_photons

if TYPE_CHECKING:
    from orienteer.reconstruction.nuisances.ring_deviation import Rings
    from orienteer.reconstruction.workspace import Workspace

_NUMBERS_AT_ONCE = 1 << 23
_THREADS = 256
# Nats by which the particle must explain a frame better than background alone.
_LEAST_SIGNAL = 3.0
# Relative variances of speckles about a radial profile: fully developed, and of nearly round particles.
_CONTRASTS = (1.0, 0.25)
# Relative variances with which something similar to the particle may deviate from the model.
_DEVIATIONS = (0.1, 0.3)
_ROUNDS = 20


@dataclass(frozen=True, eq=False)
class DenseFrames:
    """A few frames as arrays: ``counts`` (D, S) float32 on scored pixels, ``seen`` (D, S) float32, 0 where a
    frame forbids a pixel, or None when no frame forbids any."""

    counts: Array
    seen: Array | None

    def masked(self, values: Array) -> Array:
        """Values (D, S) or (S,), 0 where the frame forbids a pixel."""
        if self.seen is not None:
            return values * self.seen
        xp = array_namespace(self.counts)
        return values if values.ndim == 2 else xp.broadcast_to(values, self.counts.shape)


def dense_frames(frames: FrameBatch) -> DenseFrames:
    """The scored pixels of frames."""
    S = frames.n_scored
    dense: Array = dense_from_photons(frames.photons) if frames.photons is not None else frames.dense
    counts = dense[:, :S].astype(np.float32)
    if frames.missing is None:
        return DenseFrames(counts, None)
    return DenseFrames(counts, (dense_from_photons(frames.missing)[:, :S] == 0).astype(np.float32))


def signal_at_poses(
    work: "Workspace", models: Array, quaternions: NDArray[np.float64], model: NDArray[np.int64]
) -> Array:
    """Photons (D, S) float32 that these models predict at these poses at unit fluence.

    models : (M, n, n, n); quaternions : (D, 4); model : (D,) of each frame; -1 (none) takes the first model.
    """
    xp = work.xp
    matrices = np.swapaxes(to_matrix(quaternions), 1, 2).astype(np.float32)
    expected = xp.empty((len(model), work.n_scored), dtype=np.float32)
    which, expander = np.maximum(model, 0), work.expander(models)
    for m in np.unique(which):
        rows = np.flatnonzero(which == m)
        own = xp.asarray(np.ascontiguousarray(matrices[rows]))
        slices = expander.slices_of(int(m), own, by_pixel=False)
        expected[xp.asarray(rows)] = slices[:, : work.n_scored]
    expected *= work.pixel_weights[: work.n_scored]
    floor = work.pixel_model.floor[: work.n_scored]
    return xp.maximum(expected, floor)


def log_probability(counts: Array, expected: Array, dispersion: Array | float) -> Array:
    """ln P of each frame, (D,) float64, without -ln K!: negative binomial, or Poisson if dispersion is 0.

    counts, expected : (D, S); pixels with ``expected`` 0 do not count.  dispersion : (D, S) or (S,).
    """
    xp = array_namespace(counts)
    e = xp.asarray(dispersion, dtype=np.float64)
    each = e.ndim == 2
    e = xp.ascontiguousarray(e if each else xp.broadcast_to(e, counts.shape[1:]))
    if is_on_gpu(counts):
        D, S = counts.shape
        out = xp.empty(D, dtype=np.float64)
        kernel = load_kernels(Path(__file__).with_suffix(".cu")).get_function("log_probability")
        K, lam = (xp.ascontiguousarray(x, dtype=np.float32) for x in (counts, expected))
        kernel((D,), (_THREADS,), (K, lam, e, np.int64(S if each else 0), np.int32(S), out))
        return out
    from orienteer.reconstruction.frames import _frame_fit_numba as twin

    out = np.empty(len(counts))
    twin.log_probability(
        np.ascontiguousarray(counts), np.ascontiguousarray(expected), e if each else e[None], out
    )
    return out


def log_probability_of_anything(
    frames: DenseFrames, reference: Array, background: Array | None, shell: NDArray[np.int64]
) -> Array:
    """ln P of each frame, (D,) float64, without the term -ln K!, if nothing is known about its speckles.

    The signal in a shell is ``reference`` (S,) times a factor that is fitted to the frame, and scatters about
    that as speckles do.  Each fitted factor costs half the logarithm of the photons of the shell.
    """
    xp = array_namespace(frames.counts)
    counts = frames.counts
    n = int(shell.max()) + 1
    member = np.zeros((len(shell), n), dtype=np.float32)
    member[np.arange(len(shell)), shell] = 1
    member = xp.asarray(member[:, member.any(axis=0)])
    exposure = frames.masked(xp.asarray(reference))
    behind = None if background is None else frames.masked(background)
    photons = counts @ member
    light = photons if behind is None else xp.maximum(photons - behind @ member, 0.0)
    expected = exposure @ member
    factor = light / xp.maximum(expected, 1e-30)
    signal = exposure * (factor @ member.T)
    total = signal if behind is None else signal + behind
    share = xp.ones_like(signal) if behind is None else signal / xp.maximum(total, 1e-30)
    speckled = [log_probability(counts, total, contrast * share * share) for contrast in _CONTRASTS]
    return log_mean(speckled) - 0.5 * xp.log1p(photons.astype(xp.float64)).sum(axis=1)


def log_mean(log_values: Sequence[Array]) -> Array:
    """ln of the mean of exp(values), arrays of one shape.

    >>> log_mean([np.log([1.0, 3.0]), np.log([3.0, 5.0])])
    array([0.69314718, 1.38629436])
    """
    xp, found = array_namespace(log_values[0]), log_values[0]
    for values in log_values[1:]:
        found = xp.logaddexp(found, values)
    return found - float(np.log(len(log_values)))


@dataclass(frozen=True, eq=False)
class FrameFit:
    """How the model fits all frames at their likeliest poses, (N,) each.

    fluence : the likeliest, at least 0; not yet normalised.
    log_odds : ln P(frame | model at its pose) - ln P(frame | anything), in nats; 0 for frames not judged.
    log_deviation_odds : the same against something that deviates from the model at this pose.
    log_signal_odds : the same against background alone, minus the nats by which the particle must be better;
        infinite without a background.
    """

    fluence: NDArray[np.float64]
    log_odds: NDArray[np.float64]
    log_deviation_odds: NDArray[np.float64]
    log_signal_odds: NDArray[np.float64]


def fit_frames(
    work: "Workspace", models: Array, quaternions: NDArray[np.float64], model: NDArray[np.int64],
    fluence: NDArray[np.float64], dispersion: NDArray[np.float64], *, fits_fluence: bool,
    rings: "Rings | None" = None,
) -> FrameFit:  # fmt: skip
    """Fit and judge all frames at their likeliest poses.

    models : (halves, M, n, n, n); a frame is compared with the model of the half it does not belong to.
    quaternions, model, fluence : (N, 4), (N,) and (N,) of all frames.
    dispersion : (S,) relative variance of the model's own error at the scored pixels.
    fits_fluence : whether to find the likeliest fluence; otherwise it stays as it is.
    rings : also adds up the photons of the same frames in rings.
    """
    result = FrameFit(fluence.copy(), *np.zeros((3, len(fluence))))
    eps = work.xp.asarray(dispersion)
    columns = result.fluence, result.log_odds, result.log_deviation_odds, result.log_signal_odds
    done = Done()
    for own_models, places, frames in done.pieces(work, models, fluence):
        signal = frames.masked(signal_at_poses(work, own_models, quaternions[places], model[places]))
        found = _fit(work, frames, signal, fluence[places], eps, fits_fluence)
        for column, values in zip(columns, found, strict=True):
            column[places] = values
        if rings is not None:
            rings.look(places, frames, signal, found[0])
    done.complete(work, *columns, *(() if rings is None else rings.sums))
    return result


def deviation_odds(
    work: "Workspace", models: Array, quaternions: NDArray[np.float64], model: NDArray[np.int64],
    fluence: NDArray[np.float64], dispersion: NDArray[np.float64],
) -> NDArray[np.float64]:  # fmt: skip
    """ln P(frame | model at its pose) - ln P(frame | something that deviates from it), (N,), in nats.

    While the model is blurred, its dispersion is large enough to include all frames of the particle.
    Arguments as in :func:`fit_frames`.
    """
    odds = np.zeros(len(fluence))
    eps = work.xp.asarray(dispersion)
    done = Done()
    for own_models, places, frames in done.pieces(work, models, fluence):
        signal = frames.masked(signal_at_poses(work, own_models, quaternions[places], model[places]))
        expected = expected_photons(work, frames, signal, fluence[places])
        with_model = log_probability(frames.counts, expected, eps)
        odds[places] = to_numpy(with_model - _log_probability_deviating(frames, expected, eps))
    done.complete(work, odds)
    return odds


class Done:
    """A pass over all frames, a few at a time, in which every rank does its share."""

    def __init__(self) -> None:
        self._places: list[NDArray[np.int64]] = []

    def pieces(
        self, work: "Workspace", models: Array, fluence: NDArray[np.float64]
    ) -> Iterator[tuple[Array, NDArray[np.int64], DenseFrames]]:
        """A few frames at a time: the models (M, n, n, n) to compare them with, places and scored pixels.

        models : (halves, M, n, n, n); a frame is compared with the model of the half it does not belong to.
        """
        for part, own_models in work.parts(models):
            for batch in work.batches(part, fluence):
                for places, frames in pieces(batch, work.n_scored, work.mesh.poses):
                    self._places.append(places)
                    yield own_models, places, frames

    def complete(self, work: "Workspace", *columns: NDArray[Any]) -> None:
        """Fill columns (N, ...) with the results of the other ranks."""
        complete_rows(work.mesh.all, np.concatenate([np.zeros(0, np.int64), *self._places]), *columns)


def pieces(
    batch: Batch, n_scored: int, comm: Comm = SERIAL
) -> Iterator[tuple[NDArray[np.int64], DenseFrames]]:
    """Places and scored pixels of a few frames of a batch at a time.

    comm : ranks that have the same batch; each gets its share of the frames.
    """
    step = max(1, _NUMBERS_AT_ONCE // n_scored)
    for group in batch.groups:
        places = batch.places[group.columns]
        for own in own_blocks(comm, len(places), is_on_gpu(batch.fluence)):
            for first in range(own.start, own.stop, step):
                piece = slice(first, min(first + step, own.stop))
                yield places[piece], dense_frames(group.frames[piece])


def _fit(
    work: "Workspace", frames: DenseFrames, signal: Array, fluence: NDArray[np.float64], dispersion: Array,
    fits_fluence: bool,
) -> tuple[NDArray[np.float64], ...]:  # fmt: skip
    S, xp, pixels = work.n_scored, work.xp, work.pixel_model
    background = None if pixels.background is None else pixels.background[:S]
    if fits_fluence:
        behind = xp.zeros(S) if background is None else background
        fluence = to_numpy(solve_fluence(frames.counts, xp.ascontiguousarray(signal), behind))
    expected = expected_photons(work, frames, signal, fluence)
    with_model = log_probability(frames.counts, expected, dispersion)
    anything = log_probability_of_anything(frames, pixels.safe_reference[:S], background, work.shell[:S])
    deviating = _log_probability_deviating(frames, expected, dispersion)
    over_background = np.full(len(fluence), np.inf)
    if background is not None:
        empty = log_probability(frames.counts, frames.masked(background), 0.0)
        over_background = to_numpy(with_model - empty) - _LEAST_SIGNAL
    return fluence, to_numpy(with_model - anything), to_numpy(with_model - deviating), over_background


def expected_photons(
    work: "Workspace", frames: DenseFrames, signal: Array, fluence: NDArray[np.float64]
) -> Array:
    """Expected photons (D, S): signal (D, S) at unit fluence times fluence, plus the background."""
    expected = signal * work.xp.asarray(fluence[:, None].astype(np.float32))
    background = work.pixel_model.background
    return expected if background is None else expected + frames.masked(background[: work.n_scored])


def _log_probability_deviating(frames: DenseFrames, expected: Array, dispersion: Array) -> Array:
    """ln P of each frame, (D,), of something that deviates from the model by more than its dispersion."""
    return log_mean([log_probability(frames.counts, expected, dispersion + more) for more in _DEVIATIONS])


def particle_probability(
    log_odds: NDArray[np.float64], learns: NDArray[np.bool_], least_kept: float = 0.2
) -> NDArray[np.float64]:
    """Probability that each frame shows the particle, (N,); the share of frames that do is estimated as well.

    learns : (N,) bool, frames from which this share is estimated.
    least_kept : share of frames that must stay; a model that explains fewer is itself wrong.
    """
    if not learns.any():
        return np.ones(len(log_odds))
    known, prior = log_odds[learns], np.log(19.0)
    for _ in range(_ROUNDS):
        share = float(np.clip(expit(known + prior).mean(), 0.05, 1 - 1e-3))
        prior = np.log(share / (1 - share))
    prior = max(prior, -float(np.quantile(known, 1 - least_kept)))
    return np.asarray(expit(log_odds + prior))
