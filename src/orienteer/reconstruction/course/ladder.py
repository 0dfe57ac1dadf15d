"""The stages of a run: resolution and grid become finer together, from a few speckles to the edge."""

from dataclasses import dataclass, replace

import numpy as np

from orienteer.compute.arrays import DeviceName

# Speckles from the centre to the radius of the first stage.  The first few speckles of nearly round particles
# are round: an icosahedral virus was found with 11 speckles or more, sometimes with 9, never with 6.
_FIRST_SPECKLES = 18.0
_GROWTH = 1.5
# Divisions of the 600-cell per speckle from the centre to the radius: in the first stage, in which frames are
# spread over many poses, and in the later ones.
_FIRST_LEVELS_PER_SPECKLE, _LEVELS_PER_SPECKLE = 0.42, 0.7
_COARSEST_LEVEL = 4
# The first stage is rough: it has fewer voxels across a speckle than the later ones, by this factor.
_FIRST_SAMPLING = 0.75
# Up to this many poses, all frames are compared with all poses, in one pass.  A list of poses for each frame
# costs more per pose than a matrix product, and far more on a GPU, where products of 10 000 frames with
# 6 000 pixels and 245 820 poses take 0.1 s.
_MOST_AT_ONCE = {"cpu": 20_000, "cuda": 300_000}
# By what factor (rms) the nearest pose is closer if equivalent poses lie between the poses of the grid.
# Measured with 4 to 14 divisions: 2.9 to 3.3 (I), 2.4 (O) and 1.9 to 2.0 (T).
_NEARER = {"I": 3.0, "O": 2.3, "T": 1.9}


@dataclass(frozen=True)
class Stage:
    """One stage of a run.

    scored_inv_A : pixels up to this |q| orient the frames.
    merged_inv_A : pixels up to this |q| are merged, so that the next stage can score them.
    level : divisions of the 600-cell.
    voxel_inv_A : edge of a voxel of the intensity.
    in_two_passes : whether frames are first compared with all poses of a grid with half as many divisions,
        and in this one only with the poses below the likely ones.
    """

    scored_inv_A: float
    merged_inv_A: float
    level: int
    in_two_passes: bool = False
    voxel_inv_A: float = 0.0

    @property
    def first_level(self) -> int:
        """Divisions of the first grid: every frame is compared with all its poses."""
        return self.level // 2 if self.in_two_passes else self.level

    def n_poses(self, order: int = 1) -> float:
        """Poses of the 600-cell at this level, over the order of the point group that reduces the grid."""
        return 10 * (5 * self.level**3 + self.level) / order


def ladder(
    edge_inv_A: float, diameter_A: float, finest_level: int, *,
    device: DeviceName = "cpu", group_order: int = 1, voxel_inv_A: float = 0.0,
) -> list[Stage]:  # fmt: skip
    """The stages from the first radius to the edge.

    edge_inv_A : largest |q| to be merged.
    diameter_A : of the particle; a speckle is 1 / diameter wide.
    finest_level : most divisions of any grid; 0: no limit.
    voxel_inv_A : edge of a voxel in the later stages.
    device, group_order : where frames are scored, and the order of the point group that reduces the grid.
    """
    radii = [min(edge_inv_A, _FIRST_SPECKLES / diameter_A)]
    if radii == [edge_inv_A]:
        radii.append(edge_inv_A)  # a second stage with the same radius, but a finer grid
    while radii[-1] < edge_inv_A:
        following = radii[-1] * _GROWTH
        radii.append(edge_inv_A if following > 0.85 * edge_inv_A else following)
    stages = []
    for i, radius in enumerate(radii):
        share = _FIRST_LEVELS_PER_SPECKLE if i == 0 else _LEVELS_PER_SPECKLE
        level = max(_COARSEST_LEVEL, int(np.ceil(share * radius * diameter_A)))
        if finest_level:
            # The limit is for the last grid; that of the first stage stays coarser by the usual ratio.
            most = int(np.ceil(finest_level * _FIRST_LEVELS_PER_SPECKLE / _LEVELS_PER_SPECKLE))
            level = min(level, max(_COARSEST_LEVEL, most) if i == 0 else finest_level, finest_level)
        merged = radii[min(i + 1, len(radii) - 1)]
        stage = Stage(radius, merged, level, voxel_inv_A=voxel_inv_A if i else voxel_inv_A / _FIRST_SAMPLING)
        # In the first stage frames are spread over many poses: a second pass could leave out none.
        stages.append(_in_passes(stage, device, group_order, finest_level) if i else stage)
    return stages


def askew_stages(stages: list[Stage], group: str, device: DeviceName) -> list[Stage]:
    """The stages of a run that has found a symmetry: grids keep all poses, turned relative to its axes.

    group : the symmetry.  Turned like this, the equivalents of each pose lie between the other poses, so that
        for polyhedra the later grids need fewer divisions.

    >>> stages = ladder(1 / 15, 900, 0)
    >>> [stage.level for stage in stages], [stage.level for stage in askew_stages(stages, "I", "cpu")]
    ([8, 20, 30, 42], [8, 8, 10, 14])
    """
    first, *later = stages
    levels = [max(first.level, int(np.ceil(stage.level / _NEARER.get(group, 1.0)))) for stage in later]
    coarser = [
        replace(stage, level=level, in_two_passes=False) for stage, level in zip(later, levels, strict=True)
    ]
    return [first, *(_in_passes(stage, device) for stage in coarser)]


def _in_passes(stage: Stage, device: DeviceName, group_order: int = 1, finest_level: int = 0) -> Stage:
    """The stage in one pass, or in two if its grid is large; two passes need an even number of divisions."""
    level = stage.level
    if level < 2 * _COARSEST_LEVEL or stage.n_poses(group_order) <= _MOST_AT_ONCE[device]:
        return stage
    even = level - level % 2 if level == finest_level else level + level % 2
    return replace(stage, level=even, in_two_passes=True)
