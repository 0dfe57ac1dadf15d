"""How far the halves agree about pixels that oriented no frame.

Both halves begin with the same random model, and the frames of each are oriented by the model of the other.
A dim frame is drawn to poses in which its noise resembles the speckles of that model, and carries this
resemblance into the model of its own half.  So the halves come to share, and agree about, what they began
with or have made up since.  Autocorrelations that end at the particle's diameter, and densities, spread such
errors to neighbouring shells.

So, when a run is over, the frames are oriented four times more, each time without every fourth ring of their
pixels, and are merged with all pixels, as they are.  The pixels of the rings that were left out had no part
in choosing the orientation, so there the halves can have nothing in common but the particle.  All rings
together, each from the pass that left it out, show how far the halves agree.  Poses found with fewer pixels
are a little less certain than those of the result, so the answer is slightly pessimistic.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.distances import centred_axis, distances
from orienteer.compute.arrays import Array, to_device
from orienteer.reconstruction.model.autocorrelation import WienerFilter
from orienteer.reconstruction.model.relative_intensity import both_friedel
from orienteer.reconstruction.model.symmetry import symmetrise_sums
from orienteer.reconstruction.workspace import Workspace

if TYPE_CHECKING:
    from orienteer.mtip.mtip import Mtip

# Passes over the frames; each leaves out every _TIMES-th ring and finds poses by all others.
_TIMES = 4
# Least width of a ring in voxels: merging spreads photons to neighbouring voxels.
_FEWEST_VOXELS = 3.0
# Photons of a round particle that are added to every voxel.
_PRIOR_PHOTONS = 0.25


def unseen_correlation(mtip: "Mtip", roundness: Array) -> NDArray[np.float64]:
    """The correlation of the halves of each model by shell, (M, shells + 1), from unseen pixels.

    roundness : (edge,)^3, J of a round particle, whose rings the halves share in any case.

    Frames, models and poses of the run stay as they are.
    """
    work, pixels, found = mtip.work, mtip.pixels, mtip.table.state()
    width_inv_A = max(_FEWEST_VOXELS * work.stage.voxel_inv_A, 1 / mtip.diameter_A)
    ring = rings(pixels.length_inv_A, width_inv_A)
    length = distances(centred_axis(work.edge_voxels, work.stage.voxel_inv_A))
    ring_of_voxel = to_device(rings(length, width_inv_A), mtip.device)
    unseen = [[_Unseen.like(ring_of_voxel) for _ in range(mtip.n_halves)] for _ in range(mtip.n_models)]
    work.let_go()
    mtip.merges_whole_frames = True
    try:
        for number in range(_TIMES):
            mtip.pixels = replace(pixels, merge_only=pixels.merge_only | (ring == number))
            mtip.work = Workspace(mtip, work.stage)
            mtip.work.rows.log_prior = work.rows.log_prior
            likelihood = mtip.noise.likelihood(mtip.work)
            beta = mtip.annealing.inverse
            for half in range(mtip.n_halves):
                deposit = mtip.orient_and_merge(half, likelihood, beta)
                for model, own in enumerate(deposit.sums):
                    sums = symmetrise_sums(both_friedel(own.finish()), mtip.group)
                    unseen[model][half].take(sums, ring_of_voxel == number)
    finally:
        mtip.pixels, mtip.work, mtip.merges_whole_frames = pixels, work, False
        mtip.table.restore(found)
    return np.stack([_correlation(first, last, roundness, mtip.group.order) for first, last in unseen])


def rings(length_inv_A: NDArray[np.float64], width_inv_A: float) -> NDArray[np.int64]:
    """The pass (0 to 3) that leaves out each place, by its distance from the centre.

    >>> rings(np.array([0.0, 0.9, 1.0, 3.5, 4.0]), 1.0)
    array([0, 0, 1, 3, 0])
    """
    return np.asarray((length_inv_A / width_inv_A).astype(np.int64) % _TIMES)


class _Unseen:
    """Photons and exposure (n, n, n) of a half, every ring from the pass that left it out."""

    def __init__(self, photons: Array, exposure: Array) -> None:
        self.photons, self.exposure = photons, exposure

    @classmethod
    def like(cls, cube: Array) -> "_Unseen":
        return cls(cube.astype(np.float64) * 0, cube.astype(np.float64) * 0)

    def take(self, sums: Array, where: Array) -> None:
        self.photons += sums[..., 0] * where
        self.exposure += sums[..., 1] * where

    def relative_to(self, round_one: Array) -> Array:
        """Photons over those of a round particle, (n, n, n) float32; near 1 where few are expected."""
        expected = self.exposure * round_one
        return ((self.photons + _PRIOR_PHOTONS) / (expected + _PRIOR_PHOTONS)).astype(np.float32)


def _correlation(first: _Unseen, second: _Unseen, roundness: Array, order: int) -> NDArray[np.float64]:
    """The correlation of two halves by shell, leaving out distances of the autocorrelation without signal."""
    exposure = (first.exposure + second.exposure).astype(np.float32)
    cubes = [half.relative_to(roundness) for half in (first, second)]
    return WienerFilter(cubes[0], cubes[1], exposure, order).correlation
