"""How the poses of frames are searched: with all poses of one grid, or in two passes from coarse to fine."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, DeviceName, array_namespace, is_on_gpu
from orienteer.compute.ranks.comm import SERIAL, Comm
from orienteer.likelihood.base import Likelihood
from orienteer.posterior.posterior import Posterior
from orienteer.posterior.scores import ScoreStore
from orienteer.posterior.tempering import inverse_temperatures
from orienteer.reconstruction.frames.batch import Batch
from orienteer.reconstruction.orienting.deposit import Deposit
from orienteer.reconstruction.orienting.expander import Expander
from orienteer.reconstruction.orienting.expectation import expect
from orienteer.reconstruction.orienting.fine_search import FineSearch
from orienteer.reconstruction.orienting.fine_temperature import fine_inverse_temperature
from orienteer.reconstruction.orienting.maximisation import merge
from orienteer.reconstruction.orienting.rows import Poses, RowSpace
from orienteer.reconstruction.orienting.temperature import LAST_PERPLEXITY
from orienteer.reconstruction.states.posterior import StatePosterior

if TYPE_CHECKING:
    from orienteer.reconstruction.workspace import Workspace

# Faint frames keep many coarse poses.  If more than this share of the fine poses lies below them, lists of
# poses cost more than the whole grid: on an H200, a listed pose takes as long as 40 poses in matrix products.
_LARGEST_SHARE: dict[DeviceName, float] = {"cpu": 0.2, "cuda": 0.02}
# Frames from which the temperature of the second pass is found.  More frames would together name nearly as
# many rows as all frames do.
N_SAMPLE = 16


class Grid(Protocol):
    """A grid of poses that frames are compared with, and its rows."""

    @property
    def poses(self) -> Poses:
        """The poses on the device."""
        ...

    @property
    def quaternions(self) -> NDArray[np.float64]:
        """Their quaternions in float64, (K, 4)."""
        ...

    @property
    def rows(self) -> RowSpace:
        """Models times poses, and junk classes."""
        ...


class Search(Protocol):
    """Orients and merges batches of frames, at the temperatures of one iteration."""

    @property
    def grid(self) -> Grid:
        """The rows that the posteriors refer to."""
        ...

    def inverse_temperatures(self, batch: Batch) -> Array:
        """(D,) inverse temperatures of the posteriors of a batch."""
        ...

    def step(
        self, likelihood: Likelihood, expander: Expander, batch: Batch, deposit: Deposit,
        pixel_weights: Array, states: StatePosterior | None = None,
    ) -> tuple[Posterior, Array]:  # fmt: skip
        """Orient and merge a batch.

        states : collects how likely each model is for each frame; None: not needed.
        Returns the posteriors, and the photons (D,) that the poses of each frame predict at unit fluence.
        """
        ...


@dataclass(frozen=True, eq=False)
class WholeGrid:
    """Every frame is compared with every pose of a grid.

    beta : inverse temperature of a frame of fluence 1.
    below : if this is the fine grid of a search in two passes, that search: masses are then counted for the
        coarse rows.
    comm : ranks that share the poses of the same frames.
    """

    grid: Grid
    beta: float
    kept_mass: float
    below: FineSearch | None = None
    comm: Comm = SERIAL

    def inverse_temperatures(self, batch: Batch) -> Array:
        """As :class:`Search` says."""
        return inverse_temperatures(self.beta, batch.fluence)

    def step(
        self, likelihood: Likelihood, expander: Expander, batch: Batch, deposit: Deposit,
        pixel_weights: Array, states: StatePosterior | None = None,
    ) -> tuple[Posterior, Array]:  # fmt: skip
        """As :class:`Search` says."""
        rows, xp = self.grid.rows, array_namespace(batch.fluence)
        device: DeviceName = "cuda" if is_on_gpu(batch.fluence) else "cpu"
        store = ScoreStore(len(rows), len(batch), device, self.kept_mass, self.comm)
        posterior = expect(likelihood, expander, rows, batch, self.inverse_temperatures(batch), store)
        own = deposit
        if self.below is not None:
            own = replace(deposit, row_mass=xp.zeros(len(rows), dtype=np.float64))
        expected = merge(likelihood, expander, rows, batch, store, own, pixel_weights, states)
        if self.below is not None:
            deposit.add_mass(slice(None), self.below.mass_of_parents(own.row_mass))
        return posterior, expected


@dataclass(frozen=True, eq=False)
class TwoPasses:
    """Every frame is compared with every coarse pose, and then only with the fine poses below likely ones.

    beta, fine_beta : inverse temperatures of a frame of fluence 1, in the first and the second pass.
    """

    grid: FineSearch
    beta: float
    fine_beta: float

    def inverse_temperatures(self, batch: Batch) -> Array:
        """As :class:`Search` says."""
        return inverse_temperatures(self.fine_beta, batch.fluence)

    def step(
        self, likelihood: Likelihood, expander: Expander, batch: Batch, deposit: Deposit,
        pixel_weights: Array, states: StatePosterior | None = None,
    ) -> tuple[Posterior, Array]:  # fmt: skip
        """As :class:`Search` says."""
        first, second = inverse_temperatures(self.beta, batch.fluence), self.inverse_temperatures(batch)
        posterior, expected = self.grid.step(
            likelihood, expander, batch, first, second, deposit, pixel_weights, states
        )
        assert expected is not None
        return posterior, expected


def choose_search(
    work: "Workspace", likelihood: Likelihood, expander: Expander, sample: Batch, beta: float,
    kept_mass: float, states_per_frame: float = 1.0,
) -> Search:  # fmt: skip
    """The search of an iteration: in two passes if the stage has them, unless the frames are too faint.

    Faint frames keep so many coarse poses that comparing them with the whole fine grid is faster.
    sample : a few of the frames; beta : inverse temperature on the grid of the workspace.
    states_per_frame : models that a frame is spread over, with poses in each.
    """
    fine, poses = work.fine, work.mesh.poses
    if fine is None:
        return WholeGrid(work, beta, kept_mass, comm=poses)
    own_beta = inverse_temperatures(beta, sample.fluence)
    blocks = fine.blocks(fine.coarse(likelihood, expander, sample, own_beta))
    target = LAST_PERPLEXITY * states_per_frame
    fine_beta = fine_inverse_temperature(fine, likelihood, expander, sample, blocks, target)
    n_values = poses.sum(blocks.n_values)
    # Groups of ranks may round differently, but all frames of a half must have the same temperature.
    n_values, fine_beta = work.mesh.half.bcast((n_values, fine_beta))
    device: DeviceName = "cuda" if is_on_gpu(sample.fluence) else "cpu"
    if n_values > _LARGEST_SHARE[device] * len(sample) * len(fine.rows):
        return WholeGrid(fine, fine_beta, kept_mass, below=fine, comm=poses)
    return TwoPasses(fine, beta, fine_beta)
