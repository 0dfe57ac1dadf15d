"""Split one state in two: the frames that it explains worst begin a state of their own.

Models that begin at random sort frames by chance, and the first that fits takes them all.  A state that is
split off another begins with nearly right poses in the same frame of reference, and with the frames that are
most unlike the rest: few or many, but a minority is among them.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from orienteer.reconstruction.frames.frame_fit import deviation_odds
from orienteer.reconstruction.states.radial_means import ratios_of_states
from orienteer.reconstruction.states.trial import Trial, try_split

if TYPE_CHECKING:
    from orienteer.reconstruction.emc import Emc

# Least and largest share of a state with which a new one begins.
_LEAST, _MOST = 0.02, 0.5


def split_state(emc: "Emc") -> None:
    """Add a model: split the state whose frames gain most, and give the new part a model of its own."""
    work, table = emc.work, emc.table
    likelihood = emc.noise.likelihood(work)
    trial = likeliest_split(emc)
    parent = trial.parent
    counts = _frames_of_states(emc)
    n_new = float(trial.is_new.sum())
    counts[parent] = max(counts[parent] - n_new, 0.0)
    beta, halves = emc.annealing.inverse, range(emc.n_halves)
    # Each half was sorted by models of the other half, and is merged into its own: the halves stay apart.
    weights = [np.where(trial.is_new, 0.0, table.weight), np.where(trial.is_new, table.weight, 0.0)]
    rest, new = (
        [emc.orient_and_merge(half, likelihood, beta, weight) for half in halves] for weight in weights
    )
    found = emc.solve(rest).joined(emc.solve(new), parent)
    emc.n_models += 1
    table.take_states(emc.n_models)
    work.take_models(np.append(counts, n_new))
    emc.take_models(found)
    emc.ratios = [*emc.ratios, emc.ratios[parent]]
    work.take_ratios(emc.ratios)
    if emc.has_own_means:
        shown = np.where(trial.is_new, emc.n_models - 1, emc.merged_into)
        emc.take_ratios(ratios_of_states(emc, shown, emc.n_models))


def likeliest_split(emc: "Emc") -> Trial:
    """The split that makes frames likeliest; or the next best, if a state from the best has failed."""
    work, table = emc.work, emc.table
    likelihood = emc.noise.likelihood(work)
    dispersion = emc.noise.dispersion_of_pixels(work)[: work.n_scored]
    odds = deviation_odds(work, emc.models, table.quaternion, table.model, emc.fluence, dispersion)
    shown = emc.merged_into
    trials = [
        try_split(emc, likelihood, m, shown == m, choose_seeds(odds, shown == m)) for m in range(emc.n_models)
    ]
    trials.sort(key=lambda trial: -trial.gain)
    # Ranks may round differently, but must split the same state.
    return emc.mesh.all.bcast(trials[emc.growth.n_tries % len(trials)])


def drop_state(emc: "Emc", model: int) -> None:
    """Remove a model; its frames, if there are any, then belong to none."""
    table, kept = emc.table, [m for m in range(emc.n_models) if m != model]
    shown = table.model
    table.model = np.where(shown == model, -1, shown - (shown > model))
    emc.models, emc.full = emc.models[:, kept], emc.full[kept]
    emc.n_models -= 1
    del emc.ratios[model]
    emc.work.take_ratios(emc.ratios)
    table.take_states(emc.n_models)
    emc.work.take_models(_frames_of_states(emc))


def _frames_of_states(emc: "Emc") -> NDArray[np.float64]:
    """Number of merged frames that show each model, (M,)."""
    shown = emc.merged_into
    return np.bincount(shown[shown >= 0], minlength=emc.n_models).astype(np.float64)


def choose_seeds(odds: NDArray[np.float64], own: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether a frame begins a new state, (N,) bool: those that the state explains worst.

    odds : (N,) how well each frame is explained, in nats; own : (N,) bool, frames of the state.

    The threshold is where the two sides differ most (Otsu's method): far out if a few frames are unlike all
    others, near the middle if none are.
    """
    is_seed = np.zeros(len(odds), dtype=bool)
    places = np.flatnonzero(own)
    n = len(places)
    if n < 2:
        return is_seed
    places = places[np.argsort(odds[places], kind="stable")]
    number = np.arange(1, n)
    below = np.cumsum(odds[places])
    differ = below[:-1] / number - (below[-1] - below[:-1]) / (n - number)
    allowed = (number >= _LEAST * n) & (number <= max(_MOST * n, 1))
    between = np.where(allowed, number * (n - number) * differ**2, -1.0)
    is_seed[places[: number[np.argmax(between)]]] = True
    return is_seed
