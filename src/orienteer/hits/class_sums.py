"""One iteration of the classes in the plane: probabilities of classes and angles, then the new classes."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orienteer.hits.polar import PolarGrid

# Hits of similar brightness share a table of logarithms; its brightness is within 12 % of theirs.
_RATIO = 1.25
_HITS_AT_ONCE = 1000
_LEAST = 1e-9
# A class without hits keeps this share, so that hits can return to it.
_LEAST_SHARE = 1e-4


class ClassModel(NamedTuple):
    """Classes, the last of which is round.

    template : (C + 1, R, A) photons per unit of sensitivity of a hit of one photon.
    share : (C + 1,) prior probability of each class.
    """

    template: NDArray[np.float64]
    share: NDArray[np.float64]


class Expected(NamedTuple):
    """The results of an iteration for N hits, and the new model."""

    model: ClassModel
    log_evidence: NDArray[np.float64]
    best_class: NDArray[np.int64]
    best_angle: NDArray[np.int64]
    certainty: NDArray[np.float64]


def expect(
    grid: PolarGrid, model: ClassModel, photons: NDArray[np.float32], background: NDArray[np.float64],
    brightness: NDArray[np.float64],
) -> Expected:  # fmt: skip
    """One step of expectation maximisation: probabilities for all hits, and the classes that follow.

    photons : (N, R * A);  background : (R * A,);  brightness : (N,)
    """
    C, A, N = len(model.share) - 1, grid.n_angles, len(photons)
    rows = _rows(grid, model).astype(np.float32)
    prior = np.log(np.concatenate([np.repeat(model.share[:C] / A, A), model.share[C:]]))
    behind = background.astype(np.float32)
    light, exposure = np.zeros(rows.shape), np.zeros(len(rows))
    evidence, best, certainty = np.empty(N), np.empty(N, dtype=np.int64), np.empty(N)
    class_mass = np.zeros(C + 1)
    level = np.round(np.log(brightness) / np.log(_RATIO)).astype(np.int64)
    for one in np.unique(level):
        f = float(_RATIO**one)
        signal = np.float32(f) * rows
        expected = np.maximum(signal + behind, np.float32(_LEAST))
        logarithm, total = np.log(expected), expected.sum(axis=1, dtype=np.float64)
        seen = np.zeros_like(rows)
        of_level = np.flatnonzero(level == one)
        for first in range(0, len(of_level), _HITS_AT_ONCE):
            hits = of_level[first : first + _HITS_AT_ONCE]
            scores = (photons[hits] @ logarithm.T).astype(np.float64) - total + prior
            top = scores.max(axis=1, keepdims=True)
            weight = np.exp(scores - top)
            mass = weight.sum(axis=1, keepdims=True)
            weight /= mass
            evidence[hits] = top[:, 0] + np.log(mass[:, 0])
            by_class = np.concatenate(
                [weight[:, : C * A].reshape(len(hits), C, A).sum(axis=2), weight[:, C * A :]], axis=1
            )
            class_mass += by_class.sum(axis=0)
            best[hits], certainty[hits] = _best(weight, by_class, A)
            seen += weight.astype(np.float32).T @ photons[hits]
            exposure += f * weight.sum(axis=0)
        # The share of the measured photons that the particle scattered, not the background.
        light += seen * (signal / expected)
    share = np.maximum(class_mass / N, _LEAST_SHARE)
    new = ClassModel(_templates(grid, model, light, exposure), share / share.sum())
    return Expected(new, evidence, np.minimum(best // A, C), np.where(best < C * A, best % A, 0), certainty)


def _rows(grid: PolarGrid, model: ClassModel) -> NDArray[np.float64]:
    """Each class at each angle, as seen on the detector, (C * A + 1, R * A); the round class only once."""
    turned = [grid.turned(template) for template in model.template[:-1]]
    return np.concatenate([*turned, model.template[-1].reshape(1, -1)]) * grid.correction


def _best(
    weight: NDArray[np.float64], by_class: NDArray[np.float64], n_angles: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The likeliest row of the likeliest class of each hit, and the probability of that class."""
    c = by_class.argmax(axis=1)
    n_classes = by_class.shape[1] - 1
    hit = np.arange(len(weight))
    by_angle = weight[:, : n_classes * n_angles].reshape(len(weight), n_classes, n_angles)
    angle = by_angle[hit, np.minimum(c, n_classes - 1)].argmax(axis=1)
    row = np.where(c < n_classes, c * n_angles + angle, n_classes * n_angles)
    return row, by_class[hit, c]


def _templates(
    grid: PolarGrid, old: ClassModel, light: NDArray[np.float64], exposure: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Light (rows, R * A) over exposure (rows,) and sensitivity, turned back; the old template if unseen."""
    C, A, shape = len(old.share) - 1, grid.n_angles, (grid.n_rings, grid.n_angles)
    new = np.empty_like(old.template)
    for c in range(C):
        rows = slice(c * A, (c + 1) * A)
        above = grid.turned_back(light[rows])
        below = grid.turned_back(exposure[rows, None] * grid.correction)
        new[c] = np.where(below > 1e-6, above / np.maximum(below, 1e-6), old.template[c])
    ring_light = light[-1].reshape(shape).sum(axis=1)
    ring_seen = exposure[-1] * grid.correction.reshape(shape).sum(axis=1)
    radial = np.where(ring_seen > 1e-6, ring_light / np.maximum(ring_seen, 1e-6), old.template[-1][:, 0])
    new[-1] = radial[:, None]
    return np.maximum(new, _LEAST)
