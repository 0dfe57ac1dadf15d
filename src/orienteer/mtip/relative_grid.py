"""From the relative intensity on a grid to its transform, the relative autocorrelation, and back.

Frames are matched with the intensity over its radial envelope, J = I / envelope.  In these units every photon
counts the same, so the normal equations are well conditioned and one regularisation suits all resolutions.
As long as the envelope changes slowly from speckle to speckle, the transform of J stays where the particle's
autocorrelation is: within the diameter.

    J_g = sum_v z_v cos(2 pi q_g . r_v)        grid spacing 1 / box, r_v = box / m (index - n // 2)

Slices are interpolated linearly between the voxels of J, which multiplies z by the transform of a triangle,
sinc(r / box)^2 along each axis.  Slices of the transform of z / sinc^2 have no such error.  What remains are
the aliases of the triangle, which fall with the square of the oversampling (box over diameter).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.distances import centred_axis, distances
from orienteer.compute.arrays import Array, DeviceName, array_namespace, to_device
from orienteer.compute.fast_length import fast_length
from orienteer.mtip.normal_equations import NormalEquations
from orienteer.mtip.support import autocorrelation_support
from orienteer.phase.half_grid import density_of


@dataclass(frozen=True, eq=False)
class RelativeGrid:
    """A grid of the relative intensity, and the voxels of its autocorrelation.

    edge : odd number of voxels along an edge of the intensity, q = 0 at edge // 2.
    voxel_inv_A : of the intensity; its inverse is the box of the autocorrelation.
    reach_A : the autocorrelation ends at this distance.
    """

    edge: int
    voxel_inv_A: float
    reach_A: float
    device: DeviceName

    @cached_property
    def box(self) -> int:
        """m, voxels along an edge of the box that is transformed."""
        return fast_length(self.edge)

    @property
    def voxel_A(self) -> float:
        """Edge of a voxel of the autocorrelation."""
        return 1 / (self.box * self.voxel_inv_A)

    @property
    def n(self) -> int:
        """Voxels along an edge of the autocorrelation, an odd number; its centre is at n // 2."""
        return 2 * min(int(self.reach_A / self.voxel_A * (1 + 1e-9)), (self.box - 1) // 2) + 1

    @cached_property
    def support(self) -> Array:
        """(n, n, n) bool, voxels in which the autocorrelation may differ from 0."""
        return to_device(autocorrelation_support(self.n, self.voxel_A, self.reach_A), self.device)

    @cached_property
    def spread(self) -> Array:
        """(n, n, n) standard deviation of each voxel before any frame was seen, in units of the largest.

        Assumes random density in a ball.  The number of products that add up in a voxel at distance r is the
        overlap of the ball with itself after a shift by r.
        """
        x = distances(centred_axis(self.n, self.voxel_A) / self.reach_A)
        overlap = np.maximum(1 - 1.5 * x + 0.5 * x**3, 0)
        return to_device(np.sqrt(overlap), self.device) * self.support

    @cached_property
    def natural_weight(self) -> float:
        """One over the variance of the central voxel for speckles of full contrast."""
        return float((self.spread**2).sum())

    @cached_property
    def sharpening(self) -> Array:
        """(n, n, n) float64, one over the transform of the triangle of linear interpolation."""
        axis = 1 / np.sinc((np.arange(self.n) - self.n // 2) / self.box) ** 2
        return to_device(axis[:, None, None] * axis[:, None] * axis, self.device)

    def intensity(self, autocorrelation: Array) -> Array:
        """J (edge, edge, edge) float64 of an autocorrelation (n, n, n)."""
        m = self.box
        xp = array_namespace(autocorrelation)
        wrapped = xp.zeros((m, m, m), dtype=xp.float64)
        wrapped[self._places(self.n, m)] = autocorrelation
        return self._transformed(wrapped)[self._places(self.edge, m)] * float(m) ** 3

    def intensity_of_half(self, autocorrelation: Array) -> Array:
        """J (m, m, m // 2 + 1) float64 on the whole grid of the box, in the order of a real FFT."""
        m = self.box
        xp = array_namespace(autocorrelation)
        wrapped = xp.zeros((m, m, m), dtype=xp.float64)
        wrapped[self._places(self.n, m)] = autocorrelation
        return self._transformed(wrapped)[..., : m // 2 + 1] * float(m) ** 3

    def autocorrelation(self, intensity: Array) -> Array:
        """z (n, n, n) float64 of J (edge, edge, edge), which is taken to be 1 beyond its cube."""
        return self.round_start() + self._around(intensity - 1, self.n) / float(self.box) ** 3

    def autocorrelation_of_half(self, intensity: Array) -> Array:
        """z (n, n, n) float64 of J (m, m, m // 2 + 1) in the order of a real FFT."""
        return density_of(intensity)[self._places(self.n, self.box)]

    def round_start(self) -> Array:
        """The autocorrelation (n, n, n) of J = 1."""
        xp = array_namespace(self.support)
        start = xp.zeros((self.n,) * 3, dtype=xp.float64)
        start[(self.n // 2,) * 3] = 1.0
        return start

    def equations(
        self, intensity: Array, excess: Array, exposure: Array, q_max_inv_A: float
    ) -> NormalEquations:
        """Normal equations for z from merged slices, as if all pixels lay on the grid.

        intensity : (edge,)^3 J of the model whose slices were compared with the frames, not sharpened.
        excess : (edge,)^3 photons of the frames minus those that the slices predict.
        exposure : (edge,)^3 photons that the envelope alone predicts.

        Where the slices are right, the excess is zero, wherever pixels lie between the voxels: there the
        solution does not move.
        """
        xp = array_namespace(exposure)
        expected = exposure * intensity
        right = self._around(expected, self.n) + self.sharpening * self._around(excess, self.n)
        photons, exposed = expected + excess, exposure > 0
        square = xp.where(exposed, photons**2 / xp.where(exposed, exposure, 1.0), 0.0).sum()
        kernel = self._around(exposure, 2 * self.n - 1)
        return NormalEquations(kernel, right, self.voxel_A, float(square), int(exposed.sum()), q_max_inv_A)

    def _around(self, cube: Array, n: int) -> Array:
        """sum_g cube_g cos(2 pi q_g . r_v) (n, n, n) for voxels around the origin.

        The sum is periodic in the box, so voxels beyond it are taken from the other side.
        """
        m = self.box
        xp = array_namespace(cube)
        wrapped = xp.zeros((m, m, m), dtype=xp.float64)
        wrapped[self._places(self.edge, m)] = cube
        return self._transformed(wrapped)[self._places(n, m)] * float(m) ** 3

    def _transformed(self, even: Array) -> Array:
        """(m, m, m) inverse transform of an even real cube, computed from half of it."""
        return density_of(even[..., : self.box // 2 + 1])

    def _places(self, n: int, m: int) -> tuple[Array, Array, Array]:
        axis = to_device(_wrapped(n, m), self.device)
        return axis[:, None, None], axis[:, None], axis


def slicing_error(oversampling: float) -> float:
    """Relative L2 error of speckles in slices of a sharpened grid with this many voxels across a speckle.

    It assumes distances as frequent as in a ball; a compact particle has fewer large ones, and less error.

    >>> round(slicing_error(4.0), 3)
    0.04
    """
    return 0.64 / oversampling**2


def _wrapped(n: int, m: int) -> NDArray[np.int64]:
    """Indices, in a box of m voxels with the origin at 0, of n voxels around the origin."""
    return (np.arange(n) - n // 2) % m
