"""Between the relative intensity on a grid and its transform, the relative autocorrelation.

Frames are matched with the intensity over its radial envelope, J = I / envelope.  There every photon counts
the same, so that the normal equations are well conditioned and one regularisation suits all resolutions.  An
envelope that changes slowly from speckle to speckle leaves the transform of J where the autocorrelation of
the particle is: within its diameter.

    J_g = sum_v z_v cos(2 pi q_g . r_v)        grid spacing 1 / box, r_v = box / m (index - n // 2)

Slices are interpolated from J between the voxels around a point, which multiplies z by the transform of a
triangle, sinc(r / box)^2 along each axis.  Slices of the transform of z / sinc^2 have no such error; what is
left are the aliases of a triangle, which fall with the square of the oversampling (box over diameter).
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
    """A grid of the relative intensity and the voxels of its autocorrelation.

    edge : odd number of voxels along an edge of the intensity, q = 0 at edge // 2.
    voxel_inv_A : of the intensity; the box of the autocorrelation is one over it.
    reach_A : the autocorrelation ends at this distance.
    """

    edge: int
    voxel_inv_A: float
    reach_A: float
    device: DeviceName

    @cached_property
    def box(self) -> int:
        """m, voxels along an edge of the box in which transforms are made."""
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
        """(n, n, n) bool, where the autocorrelation may be."""
        return to_device(autocorrelation_support(self.n, self.voxel_A, self.reach_A), self.device)

    @cached_property
    def spread(self) -> Array:
        """(n, n, n) standard deviation of each voxel before any frame was seen, in units of the largest.

        Distances r are as frequent in a ball as its overlap with itself after a shift by r, and so many
        products of random densities add up in a voxel.
        """
        x = distances(centred_axis(self.n, self.voxel_A) / self.reach_A)
        overlap = np.maximum(1 - 1.5 * x + 0.5 * x**3, 0)
        return to_device(np.sqrt(overlap), self.device) * self.support

    @cached_property
    def natural_weight(self) -> float:
        """One over the variance that speckles of full contrast give to the voxel in the middle."""
        return float((self.spread**2).sum())

    @cached_property
    def sharpening(self) -> Array:
        """(n, n, n) float64, one over the transform of the triangles that slices interpolate with."""
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
        """z (n, n, n) float64 of J (edge, edge, edge), which is round beyond its cube."""
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
        """What merged slices say about z: normal equations of frames whose pixels lie on the grid.

        intensity : (edge,)^3 J of the model whose slices were compared with the frames, not sharpened.
        excess : (edge,)^3 photons that the frames have more than these slices expect.
        exposure : (edge,)^3 photons that the envelope alone would have given.

        Frames in which the slices are right leave no excess, wherever their pixels lie between the voxels:
        there the solution stays put.
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

        What is asked for beyond the box comes around: on the points of the grid waves are the same there.
        """
        m = self.box
        xp = array_namespace(cube)
        wrapped = xp.zeros((m, m, m), dtype=xp.float64)
        wrapped[self._places(self.edge, m)] = cube
        return self._transformed(wrapped)[self._places(n, m)] * float(m) ** 3

    def _transformed(self, even: Array) -> Array:
        """(m, m, m) inverse transform of an even real cube, which half of it tells."""
        return density_of(even[..., : self.box // 2 + 1])

    def _places(self, n: int, m: int) -> tuple[Array, Array, Array]:
        axis = to_device(_wrapped(n, m), self.device)
        return axis[:, None, None], axis[:, None], axis


def slicing_error(oversampling: float) -> float:
    """Relative L2 error of speckles in slices of a sharpened grid with so many voxels across a speckle.

    For distances that are as frequent as in a ball; compact particles have fewer large ones, and less error.

    >>> round(slicing_error(4.0), 3)
    0.04
    """
    return 0.64 / oversampling**2


def _wrapped(n: int, m: int) -> NDArray[np.int64]:
    """Places in a box of m voxels, the origin first, of n voxels around the origin."""
    return (np.arange(n) - n // 2) % m
