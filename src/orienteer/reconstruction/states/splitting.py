"""One state becomes two: the frames that it explains worst begin a state of their own.

Models that begin at random sort frames by chance, and the first to fit takes them all.  A state that comes
from another begins with poses that are nearly right, in the same frame of reference, and with the frames that
are most unlike the rest: few or many, a minority is among them.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, array_namespace
from orienteer.reconstruction.frames.frame_fit import deviation_odds

if TYPE_CHECKING:
    from orienteer.reconstruction.emc import Emc

# Share of the frames that are looked at to find the state that explains its frames worst.
_WORST = 0.25
# Shares of a state that a new one begins with, at least and at most.
_LEAST, _MOST = 0.02, 0.5


def split_state(emc: "Emc") -> None:
    """Go on with one model more, begun by the frames that one of the models explains worst."""
    work, table = emc.work, emc.table
    likelihood = emc.noise.likelihood(work)
    dispersion = emc.noise.dispersion_of_pixels(work)[: work.n_scored]
    odds = deviation_odds(work, emc.models, table.quaternion, table.model, emc.fluence, dispersion)
    # A part of the same state that has lost its frames once would lose them again: another is tried.
    shown = np.where(table.merged & ~emc.sentinel, table.shown, -1)
    parent, is_seed = choose_seeds(odds, shown, emc.growth.n_tries)
    counts = _frames_of_states(emc)
    n_seeds = float(is_seed.sum())
    counts[parent] = max(counts[parent] - n_seeds, 0.0)
    weights = [np.where(is_seed, 0.0, table.weight), np.where(is_seed, table.weight, 0.0)]
    beta, halves = emc.annealing.inverse, range(emc.n_halves)
    rest, seeds = (
        [emc.orient_and_merge(half, likelihood, beta, weight) for half in halves] for weight in weights
    )
    found, before = emc.solve(rest).joined(emc.solve(seeds), parent), emc.models
    emc.n_models += 1
    table.take_states(emc.n_models)
    work.take_models(np.append(counts, n_seeds))
    emc.take_models(found)
    if emc.n_halves == 1:
        return
    # Where chance has a part in which frames fit worst, it may choose one state in one half and the other in
    # the other.  So the first half alone chooses, and its models sort the frames of the second, which begins
    # with what it was.  What frames of the first half meet next is then merged from frames of the second
    # alone; but which of these are in which state, models of the first have said, noise included.
    emc.models = emc.xp.stack([found.models[0], _with_twin(before[1], parent)])
    sorted_by_first = emc.orient_and_merge(1, likelihood, beta)
    emc.take_models(emc.solve([rest[0].with_model(seeds[0], parent), sorted_by_first]))


def _with_twin(models: Array, parent: int) -> Array:
    """Models (M + 1, n, n, n), the last of which is one of the others once more."""
    return array_namespace(models).concatenate([models, models[parent : parent + 1]])


def drop_state(emc: "Emc", model: int) -> None:
    """Go on without a model; its frames, if there are any, count for none."""
    table, kept = emc.table, [m for m in range(emc.n_models) if m != model]
    shown = table.model
    table.model = np.where(shown == model, -1, shown - (shown > model))
    emc.models, emc.full = emc.models[:, kept], emc.full[kept]
    emc.n_models -= 1
    table.take_states(emc.n_models)
    emc.work.take_models(_frames_of_states(emc))


def _frames_of_states(emc: "Emc") -> NDArray[np.float64]:
    """Merged frames that show each model, (M,)."""
    shown = np.where(emc.table.merged & ~emc.sentinel, emc.table.shown, -1)
    return np.bincount(shown[shown >= 0], minlength=emc.n_models).astype(np.float64)


def choose_seeds(
    odds: NDArray[np.float64], model: NDArray[np.int64], rank: int = 0
) -> tuple[int, NDArray[np.bool_]]:
    """The model to be split, and whether a frame begins the new one, (N,) bool.

    odds : (N,) how well each frame is explained, in nats; model : (N,) of the frames, -1: has no say.
    rank : 0: the model that most of the worst explained frames belong to; 1: the next; after the last, the
        first again.

    Frames of the model are parted where the two sides differ most (Otsu): far out where a few are unlike all
    others, near the middle where none are.
    """
    is_seed = np.zeros(len(odds), dtype=bool)
    told = np.flatnonzero(model >= 0)
    worst = told[np.argsort(odds[told], kind="stable")[: max(1, int(_WORST * len(told)))]]
    counts = np.bincount(model[worst], minlength=1)
    candidates = np.argsort(-counts, kind="stable")[: max(1, int((counts > 0).sum()))]
    parent = int(candidates[rank % len(candidates)])
    own = np.flatnonzero(model == parent)
    n = len(own)
    if n < 2:
        return parent, is_seed
    own = own[np.argsort(odds[own], kind="stable")]
    number = np.arange(1, n)
    below = np.cumsum(odds[own])
    differ = below[:-1] / number - (below[-1] - below[:-1]) / (n - number)
    allowed = (number >= _LEAST * n) & (number <= max(_MOST * n, 1))
    between = np.where(allowed, number * (n - number) * differ**2, -1.0)
    is_seed[own[: number[np.argmax(between)]]] = True
    return parent, is_seed
