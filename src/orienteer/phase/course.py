"""The course of a phasing: starts, and the schedule of iterations with supports that follow the densities."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.turning import LINEAR
from orienteer.compute.arrays import Array, array_namespace, to_device
from orienteer.orientation.point_group import PointGroup, as_point_group
from orienteer.phase.background import BackgroundFit
from orienteer.phase.constraints import project_support, project_symmetry
from orienteer.phase.data import PhasingData
from orienteer.phase.half_grid import voxel_counts
from orienteer.phase.iterations import METHODS
from orienteer.phase.projection import project_modulus
from orienteer.phase.schedule import Phase
from orienteer.phase.settings import PhaseSettings
from orienteer.phase.state import PhaseState
from orienteer.phase.support import first_support, update_support

# Shares of the exploring iterations.  Up to _SHARP, supports shrink to _ROOM times their final volume and
# reach their final sharpness; within _CLOSING they shrink to the final volume.  What a large support lets in,
# such as a cloud in a cavity that hides in a missing centre, disappears only in a small one, and slowly; with
# the smallest support from the beginning, starts get stuck.
_SHARP, _CLOSING = 0.2, (0.3, 0.6)
_ROOM = 1.3
# Updates of the supports after which the symmetry of the densities is restored.
_SYMMETRY_EVERY = 5
# Largest share of the box that a support may fill; amplitudes cannot determine a density that fills more.
LARGEST_SUPPORT = 0.25
# Standard deviation in voxels of the blur from which supports are made, at first and in the end.
FIRST_BLUR, LAST_BLUR = 2.5, 1.2


@dataclass(frozen=True, eq=False)
class Course:
    """What all starts of a phasing have in common.

    first : (n, n, n) bool, the first support.
    every : iterations between two updates of the supports.
    positive : whether densities must not be negative.
    background : finds the flat background of a density; None: none is fitted.
    """

    data: PhasingData
    group: PointGroup
    every: int
    positive: bool
    first: Array
    background: BackgroundFit | None

    @classmethod
    def of(cls, data: PhasingData, settings: PhaseSettings) -> "Course":
        """The course for some data and settings."""
        return cls(
            data,
            as_point_group(settings.symmetry),
            settings.support_every,
            settings.positivity,
            first_support(data),
            BackgroundFit.of(data) if settings.background else None,
        )

    @cached_property
    def first_volume(self) -> float:
        """Voxels of the first support."""
        return float(self.first.sum())

    @property
    def symmetric_radius(self) -> float:
        """Radius in voxels of the ball in which symmetry is enforced: somewhat larger than the particle."""
        return 0.7 * self.data.diameter_A / self.data.voxel_A

    @cached_property
    def ball(self) -> Array:
        """That ball around the voxel n // 2, (n, n, n) bool."""
        square = (np.arange(self.data.n) - self.data.n // 2) ** 2
        inside = square[:, None, None] + square[:, None] + square <= self.symmetric_radius**2
        return to_device(inside, self.data.device)

    def start(self, numbers: Sequence[int], volume: NDArray[np.float64], seed: int) -> PhaseState:
        """Random densities in the first support, with the power of the data; each start has its own draws.

        numbers : of the starts, any whole numbers; the same number and seed give the same start.
        volume : (B,) final voxels of each support.
        """
        data = self.data
        xp = array_namespace(data.amplitudes)
        inside = self.first_volume
        noise = [np.random.default_rng([seed, 2, k]).random(int(inside), dtype=np.float32) for k in numbers]
        density = xp.zeros((len(noise), data.n, data.n, data.n), dtype=xp.float32)
        density[:, self.first] = xp.asarray(np.stack(noise))
        counts = xp.asarray(voxel_counts(data.n))
        power = float(((data.amplitudes * data.measured).astype(xp.float64) ** 2 * counts).sum()) / data.n**3
        density *= xp.sqrt(power / (density**2).sum(axis=(1, 2, 3), keepdims=True)).astype(xp.float32)
        density = xp.ascontiguousarray(project_symmetry(density, self.group, self.symmetric_radius))
        dark = self.background.level.estimate if self.background else 0.0
        background = xp.full(len(numbers), dark, dtype=xp.float32)
        support = xp.broadcast_to(self.first, density.shape).copy()  # a copy, because it is written to
        return PhaseState(density, support, background, volume, self.positive)

    def run(self, state: PhaseState, phases: Sequence[Phase], tell: Callable[[int], None]) -> PhaseState:
        """The state after a schedule; ``tell`` is called with the number of iterations done."""
        exploring = sum(phase.count for phase in phases if phase.method != "er")
        exploring = exploring or sum(phase.count for phase in phases)
        done = 0
        for phase in phases:
            method = METHODS[phase.method]
            for _ in range(phase.count):
                if done and done % self.every == 0:
                    self.look(state, min(1.0, done / exploring), done // self.every)
                    tell(done)
                state = method(state, self.data, phase.beta)
                done += 1
        tell(done)
        return state

    def look(self, state: PhaseState, explored: float, number: int) -> None:
        """Update supports and backgrounds from the present densities, in place.

        explored : share of the exploring iterations done, 0 to 1.  With it, volumes fall from the first to
            the final one and supports become sharper; once they are sharp, backgrounds are fitted.
        number : of the update.
        """
        sharp = min(1.0, explored / _SHARP)
        closed = float(np.interp(explored, _CLOSING, (0.0, 1.0)))
        roomy = np.minimum(state.volume * _ROOM, LARGEST_SUPPORT * self.data.n**3)
        last = np.maximum(roomy, state.volume) ** (1 - closed) * state.volume**closed
        volume = self.first_volume ** (1 - sharp) * last**sharp
        self.renew(state, volume, FIRST_BLUR + (LAST_BLUR - FIRST_BLUR) * sharp, number)
        if sharp >= 1:
            self.fit_background(state)

    def renew(self, state: PhaseState, volume: NDArray[np.float64], blur: float, number: int) -> None:
        """Make new supports of volumes (B,) in voxels, where the densities are brightest, in place.

        number : how often this was done before.
        """
        estimate = project_modulus(state.density, state.background, self.data)
        if self.group.order > 1:
            # Symmetric amplitudes and supports keep a symmetric density symmetric, but rounding errors grow.
            if number % _SYMMETRY_EVERY == 0:
                self.symmetrise(state)
            # Beyond the ball no symmetry is enforced; without this mask the density would move there.
            estimate = project_symmetry(estimate, self.group, self.symmetric_radius, LINEAR) * self.ball
        update_support(state, estimate, volume, blur)

    def fit_background(self, state: PhaseState) -> None:
        """Fit to each start the background that its density leaves unexplained, if asked for, in place."""
        if self.background is not None:
            state.background[...] = self.background(self.estimate(state))

    def symmetrise(self, state: PhaseState) -> None:
        """Give the densities the symmetry of the particle, in place."""
        if self.group.order > 1:
            state.density[...] = project_symmetry(state.density, self.group, self.symmetric_radius)

    def estimate(self, state: PhaseState) -> Array:
        """Densities (B, n, n, n): the iterates projected onto the data, then onto support and sign."""
        projected = project_modulus(state.density, state.background, self.data)
        return project_support(projected, state.support, state.positive)
