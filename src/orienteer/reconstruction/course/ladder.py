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
# How many times nearer the next pose is when likenesses lie between the poses, root mean square: 2.9 to 3.3
# (I), 2.4 (O) and 1.9 to 2.0 (T) were measured, with 4 to 14 divisions.
_NEARER = {"I": 3.0, "O": 2.3, "T": 1.9}


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
        stage = Stage(radius, merged, level, voxel_inv_A=voxel_inv_A if i else voxel_inv_A / _FIRST_SAMPLING)
        # The first stage begins with frames that are spread over all poses: there is nothing to leave out.
        stages.append(_in_passes(stage, device, group_order, finest_level) if i else stage)
    return stages


def askew_stages(stages: list[Stage], group: str, device: DeviceName) -> list[Stage]:
    """The stages of a run that has found a symmetry, whose grids keep all poses and lie askew to it.

    group : whose likenesses of each pose lie between the other poses, so that later grids of the groups of
        polyhedra need fewer divisions.

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
    """The stage in as many passes as its grid needs, with an even number of divisions where these are two."""
    level = stage.level
    if level < 2 * _COARSEST_LEVEL or stage.n_poses(group_order) <= _MOST_AT_ONCE[device]:
        return stage
    even = level - level % 2 if level == finest_level else level + level % 2
    return replace(stage, level=even, in_two_passes=True)
