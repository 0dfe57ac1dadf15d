"""The stages of a run: resolution and orientations grow together, from a few speckles to the edge."""

from dataclasses import dataclass, replace

import numpy as np

from orienteer.compute.arrays import DeviceName

# Speckles from the centre to the first radius.  Nearly round particles differ from their mean only beyond the
# first few; an icosahedral virus was found from 11 on, sometimes from 9, never from 6.
_FIRST_SPECKLES = 18.0
_GROWTH = 1.5
# Divisions of the 600-cell for each speckle to the radius: in the first stage, where frames are spread over
# many poses, and in the others.
_FIRST_LEVELS_PER_SPECKLE, _LEVELS_PER_SPECKLE = 0.42, 0.7
_COARSEST_LEVEL = 4
# A first model is rough: it has fewer voxels across a speckle than the others, by this factor.
_FIRST_SAMPLING = 0.75
# Poses that all frames meet in one pass.  Lists of poses of single frames cost more than a matrix product for
# each pose, by far more on a GPU: 10 000 frames, 6 000 pixels and 245 820 poses are 0.1 s there.
_MOST_AT_ONCE = {"cpu": 20_000, "cuda": 300_000}


@dataclass(frozen=True)
class Stage:
    """One stage of a run.

    scored_inv_A : pixels up to here decide the orientation of frames.
    merged_inv_A : pixels up to here are merged; the next stage scores them.
    level : divisions of the 600-cell.
    voxel_inv_A : of the intensity.
    in_two_passes : whether frames meet all poses of a grid of half as many divisions first, and of this one
        only those below the likely ones.
    """

    scored_inv_A: float
    merged_inv_A: float
    level: int
    in_two_passes: bool = False
    voxel_inv_A: float = 0.0

    @property
    def first_level(self) -> int:
        """Divisions of the grid whose poses all frames meet."""
        return self.level // 2 if self.in_two_passes else self.level

    def n_poses(self, order: int = 1) -> float:
        """Poses of the 600-cell at this level, of which a point group of this order leaves one in so many."""
        return 10 * (5 * self.level**3 + self.level) / order


def ladder(
    edge_inv_A: float, diameter_A: float, finest_level: int, *,
    device: DeviceName = "cpu", group_order: int = 1, voxel_inv_A: float = 0.0,
) -> list[Stage]:  # fmt: skip
    """The stages from the first radius to the edge.

    edge_inv_A : largest |q| to be merged.
    diameter_A : of the particle; 1 / diameter is a speckle.
    finest_level : limit of the grids; 0: none.
    voxel_inv_A : of the later stages.
    device, group_order : what scores frames, and how many poses a symmetric particle has in one.
    """
    radii = [min(edge_inv_A, _FIRST_SPECKLES / diameter_A)]
    if radii == [edge_inv_A]:
        radii.append(edge_inv_A)  # the same radius again, on a finer grid
    while radii[-1] < edge_inv_A:
        following = radii[-1] * _GROWTH
        radii.append(edge_inv_A if following > 0.85 * edge_inv_A else following)
    stages = []
    for i, radius in enumerate(radii):
        share = _FIRST_LEVELS_PER_SPECKLE if i == 0 else _LEVELS_PER_SPECKLE
        level = max(_COARSEST_LEVEL, int(np.ceil(share * radius * diameter_A)))
        if finest_level:
            # A limit holds for the last grid; the first stays as much coarser as it would be without.
            most = int(np.ceil(finest_level * _FIRST_LEVELS_PER_SPECKLE / _LEVELS_PER_SPECKLE))
            level = min(level, max(_COARSEST_LEVEL, most) if i == 0 else finest_level, finest_level)
        merged = radii[min(i + 1, len(radii) - 1)]
        stage = Stage(radius, merged, level)
        # The first stage begins with frames that are spread over all poses: there is nothing to leave out.
        if i > 0 and level >= 2 * _COARSEST_LEVEL and stage.n_poses(group_order) > _MOST_AT_ONCE[device]:
            even = level - level % 2 if level == finest_level else level + level % 2
            stage = Stage(radius, merged, even, in_two_passes=True)
        stages.append(stage)
    first_voxel = voxel_inv_A / _FIRST_SAMPLING
    return [replace(stage, voxel_inv_A=voxel_inv_A if i else first_voxel) for i, stage in enumerate(stages)]
