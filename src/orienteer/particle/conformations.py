"""Conformations: several particles with weights, and the path between two states of a molecule."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orienteer.errors import OrienteerError
from orienteer.particle.base import Particle, remarks_of
from orienteer.particle.checked_numbers import as_numbers
from orienteer.particle.matching import match_atoms
from orienteer.particle.structure import Structure
from orienteer.particle.superposing import superposition


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Several particles with probabilities; every shot of an experiment holds one of them.

    particles : C particles.
    weights : (C,) how often each occurs; scaled to sum to 1.  By default all are equal.
    names : C names for tables and pictures.
    """

    particles: tuple[Particle, ...]
    weights: NDArray[np.float64] = None  # type: ignore[assignment]
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        n = len(self.particles)
        if n == 0:
            raise OrienteerError("an ensemble needs at least one particle.")
        weights = np.ones(n) if self.weights is None else as_numbers(self.weights, "weights")
        names = self.names or tuple(str(c) for c in range(n))
        if weights.shape != (n,) or len(names) != n:
            raise OrienteerError(
                f"{n} particles need {n} weights and names, got {weights.size} and {len(names)}."
            )
        if not ((weights >= 0).all() and weights.sum() > 0):
            raise OrienteerError(f"weights must not be negative and not all zero, got {weights.tolist()}.")
        object.__setattr__(self, "weights", weights / weights.sum())
        object.__setattr__(self, "names", names)

    def __len__(self) -> int:
        return len(self.particles)

    def __repr__(self) -> str:
        shares = ", ".join(
            f"{name}: {weight:.3g}" for name, weight in zip(self.names, self.weights, strict=True)
        )
        return f"Ensemble({shares})"

    @property
    def radius_A(self) -> float:
        """Every particle lies within this distance of the origin."""
        return max(particle.radius_A for particle in self.particles)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was left out or decided: each sentence once, preceded by the names of its particles."""
        about: dict[str, list[str]] = {}
        for name, particle in zip(self.names, self.particles, strict=True):
            for remark in remarks_of(particle):
                about.setdefault(remark, []).append(name)
        return tuple(f"{', '.join(dict.fromkeys(names))}: {remark}" for remark, names in about.items())


def ensemble_on_path(
    first: Structure, second: Structure, fractions: Sequence[float], weights: ArrayLike | None = None
) -> Ensemble:
    """States at the given fractions of the path between two structures, with weights."""
    path = _Path(first, second)
    return Ensemble(
        tuple(path.at(fraction) for fraction in fractions),
        None if weights is None else np.asarray(weights, dtype=np.float64),  # type: ignore[arg-type]
        tuple(f"{fraction:g}" for fraction in fractions),
    )


class _Path:
    """Two structures that are matched and superposed once, to make any number of states between them."""

    def __init__(self, first: Structure, second: Structure) -> None:
        of_first, of_second = match_atoms(first, second)
        self.start = first.selected(of_first)
        end = second.selected(of_second)
        rotation, shift = superposition(end.positions_A, self.start.positions_A)
        self.end = replace(end, positions_A=end.positions_A @ rotation.T + shift)
        distance = np.sqrt(((self.end.positions_A - self.start.positions_A) ** 2).sum(axis=1).mean())
        remark = (
            f"{len(of_first)} atoms are common to the ends of the path (of {len(first)} and {len(second)}); "
            f"their root-mean-square distance is {distance:.1f} Å."
        )
        self.remarks = (
            *(f"First end of the path: {remark}" for remark in first.remarks),
            *(f"Second end of the path: {remark}" for remark in second.remarks),
            remark,
        )

    def at(self, fraction: float) -> Structure:
        if not 0 <= fraction <= 1:
            raise OrienteerError(f"the fraction of a path must lie between 0 and 1, got {fraction}.")

        def between(start: NDArray[np.float64], end: NDArray[np.float64]) -> NDArray[np.float64]:
            return (1 - fraction) * start + fraction * end

        state = replace(
            self.start,
            positions_A=between(self.start.positions_A, self.end.positions_A),
            occupancy=between(self.start.occupancy, self.end.occupancy),
            b_factor_A2=between(self.start.b_factor_A2, self.end.b_factor_A2),
            remarks=self.remarks,
        )
        return state.centred()
