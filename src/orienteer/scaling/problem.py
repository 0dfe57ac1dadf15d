"""Problem: the sizes that determine the cost of an iteration, and the work that follows from them."""

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

Method: TypeAlias = Literal["emc", "mtip"]


@dataclass(frozen=True)
class Problem:
    """One iteration at the finest grid.

    n_frames, n_pixels : number of frames, and of pixels per frame that take part.
    n_poses : orientations of the whole grid, for one model.
    edge_voxels : voxels along an edge of the intensity.
    lit_share : share of pixels with a photon; if frames are stored as lists, only these cost time.
    n_halves : sets of frames with models of their own; a batch never mixes them.
    oversampling : voxels across a speckle.
    """

    n_frames: int
    n_pixels: int
    n_poses: int
    edge_voxels: int
    lit_share: float = 1.0
    n_models: int = 1
    n_halves: int = 2
    method: Method = "emc"
    oversampling: float = 4.0

    def with_frames(self, n_frames: int) -> "Problem":
        """The same with another number of frames."""
        return replace(self, n_frames=n_frames)

    @property
    def n_rows(self) -> int:
        """Orientations of all models."""
        return self.n_poses * self.n_models

    @property
    def n_voxels(self) -> int:
        """Voxels of one model."""
        return self.edge_voxels**3


@dataclass(frozen=True)
class Work:
    """What one rank does in an iteration, counted.

    pairs : frames x rows that are scored; products : pairs x pixels, or x lit pixels for lists.
    points : pixels of slices that are made for scoring, and as many when merging; each batch makes them anew.
    voxels : of all models of all halves.
    """

    pairs: float
    products: float
    points: float
    voxels: float


def work_of(
    problem: Problem, n_frames: float, n_rows: float, batch_frames: float, *, is_listed: bool = False
) -> Work:
    """The work of a rank with this many frames and rows.

    batch_frames : frames that are compared with a slice at once; is_listed : whether frames are lists of lit
        pixels.
    """
    pairs = float(n_frames) * n_rows
    each = problem.n_pixels * (problem.lit_share if is_listed else 1.0)
    batches = problem.n_halves * max(1.0, -(-n_frames // problem.n_halves) / batch_frames)
    return Work(
        pairs,
        pairs * each,
        batches * n_rows * problem.n_pixels,
        float(problem.n_halves * problem.n_models * problem.n_voxels),
    )
