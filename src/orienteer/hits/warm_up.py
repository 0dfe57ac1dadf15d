"""The first shots of a stream, from which a hit finder learns how empty shots look."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.hits.first_background import N_GROUPS, find_empty
from orienteer.hits.model import HitModel
from orienteer.hits.photon_sums import add_frames
from orienteer.source.patterns import Patterns, SparsePhotons, concatenate

# Fewest shots to learn from.
LEAST_SHOTS = 32
# The model is learned anew when the number of shots has grown by this factor.
_GROWTH = 1.25
_ROUNDS = 2


class WarmUp:
    """Shots that are kept until there are enough of them to learn from."""

    def __init__(self) -> None:
        self.shots: Patterns | None = None
        self.n_learned = 0

    def __len__(self) -> int:
        return 0 if self.shots is None else len(self.shots)

    def add(self, patterns: Patterns) -> bool:
        """Keep these shots too; returns whether it is time to learn anew."""
        new = compact(patterns)
        self.shots = new if self.shots is None else concatenate([self.shots, new])
        if len(self) < LEAST_SHOTS or len(self) < _GROWTH * self.n_learned:
            return False
        self.n_learned = len(self)
        return True

    def state(self) -> dict[str, NDArray[Any]]:
        """The shots as arrays; empty if there are none."""
        if self.shots is None:
            return {}
        frames, n = self.shots.frames, np.array([self.n_learned])
        if isinstance(frames, SparsePhotons):
            lists = {"start": frames.start, "pixel": frames.pixel, "count": frames.count}
            return {"waiting_n_learned": n, **{f"waiting_{name}": array for name, array in lists.items()}}
        return {"waiting_n_learned": n, "waiting_frames": frames}

    def restore(self, state: Mapping[str, NDArray[Any]], n_pixels: int) -> None:
        """Continue from a saved state."""
        self.shots, self.n_learned = None, 0
        if "waiting_frames" in state:
            self.shots = Patterns(np.array(state["waiting_frames"]))
        elif "waiting_start" in state:
            start, pixel, count = (np.array(state[f"waiting_{name}"]) for name in ("start", "pixel", "count"))
            self.shots = Patterns(SparsePhotons(start, pixel, count, n_pixels))
        if self.shots is not None:
            self.n_learned = int(state["waiting_n_learned"][0])


def learn_first(
    new_model: Callable[[], HitModel], shots: Patterns, group: NDArray[np.int64], are_empty: bool = False
) -> tuple[HitModel, NDArray[np.float64]]:
    """A model learned from the first shots, and the standardised scores (N,) of these shots.

    Every shot is scored by a model learned from half of the other shots: a model learned from the shot itself
    would score hits too high and empty shots too low.

    group : (P,) the group of each pixel, -1 for unused ones.
    are_empty : whether the shots are known to be empty; otherwise nothing is known about them.
    """
    photons = new_model().sums(shots).photons.astype(np.float64)
    if are_empty:
        empty, differs = np.ones(len(shots), bool), np.zeros(len(shots), bool)
    else:
        empty, differs = find_empty(_sums_of_groups(shots, group))
    more = photons - float(np.median(photons[empty]))
    # A shot that differs from empty shots but is darker is not a hit.
    is_hit = differs & (more > 0)
    factor = np.zeros(len(shots))
    factor[is_hit] = np.minimum(np.median(more[is_hit]) / more[is_hit], 1.0) if is_hit.any() else 1.0
    half = np.arange(len(shots)) % 2 == 1
    for _ in range(1 if are_empty else _ROUNDS):
        scores = np.zeros(len(shots))
        for scored, known in ((half, ~half), (~half, half)):
            model = _taught(new_model(), shots, photons, empty & known, factor * known)
            scores[scored] = model.raw(model.sums(shots[scored]))
        model = _taught(new_model(), shots, photons, empty, factor)
        model.recent = scores
        model.derive()
        z = model.null.standardised(scores)
        if not are_empty:
            empty = model.surely_empty(z)
            factor = model.factor(model.sums(shots), z >= model.threshold)
    return model, z


def _taught(
    model: HitModel,
    shots: Patterns,
    photons: NDArray[np.float64],
    empty: NDArray[np.bool_],
    factor: NDArray[np.float64],
) -> HitModel:
    """The new model after learning from these empty shots, and from hits with their factor as weight."""
    add_frames(shots, empty.astype(np.float64), model.empty.sums)
    add_frames(shots, factor, model.hit.sums)
    model.empty.n = model.strength.n = float(empty.sum())
    model.hit.n = float(factor.sum())
    model.strength.sums += photons[empty].sum(), photons[empty] @ photons[empty]
    model.derive()
    return model


def _sums_of_groups(shots: Patterns, group: NDArray[np.int64]) -> NDArray[np.float64]:
    """Photons (N, G) of each shot in each group of pixels."""
    sums = np.zeros((len(shots), N_GROUPS))
    if isinstance(shots.frames, SparsePhotons):
        photons = shots.frames
        frame = np.repeat(np.arange(len(shots)), np.diff(photons.start))
        of_pixel = group[photons.pixel]
        used = of_pixel >= 0
        flat = (frame * N_GROUPS + of_pixel)[used]
        counted = np.bincount(flat, weights=photons.count[used], minlength=sums.size)
        return np.asarray(counted.reshape(sums.shape), np.float64)
    frames = np.nan_to_num(shots.frames)
    for g in range(N_GROUPS):
        sums[:, g] = frames[:, group == g].sum(axis=1, dtype=np.float64)
    return sums


def compact(patterns: Patterns) -> Patterns:
    """The frames alone, in host memory; photon counts as lists of photons."""
    patterns = patterns.to("cpu")
    if not patterns.is_sparse and patterns.frames.dtype.kind == "f":
        return Patterns(patterns.without_forbidden().frames.astype(np.float32))
    return Patterns(patterns.sparse())
