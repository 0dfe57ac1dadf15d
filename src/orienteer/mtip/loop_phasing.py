"""Phasing inside the loop: densities that follow the autocorrelation from generation to generation.

A density of the right size that explains the intensity adds information: its autocorrelation has fewer
unknowns, corresponds to an intensity that is nowhere negative, and fills in what no frame has shown.  The
right volume of the support is not known, so several volumes are phased side by side.  The frames of the other
half decide which of the results to use, if any.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from orienteer.compare.distances import centred_axis, distances
from orienteer.compute.arrays import Array, array_namespace, to_device, to_numpy
from orienteer.compute.fast_length import fast_length
from orienteer.mtip.relative_grid import RelativeGrid
from orienteer.phase.course import LAST_BLUR, Course
from orienteer.phase.data import PhasingData, phasing_data
from orienteer.phase.half_grid import radii, transform_of
from orienteer.phase.schedule import parse_schedule
from orienteer.phase.settings import PhaseSettings
from orienteer.phase.state import PhaseState
from orienteer.reconstruction.model.radial_profile import RadialProfile
from orienteer.volume.volume import Volume

# Edge of the box over the diameter; 2 would be enough if the diameter were known exactly.
_BOX = 2.2
# Volumes of the supports that are phased side by side, over that of the ellipsoid of the autocorrelation.
_VOLUMES = (1.0, 0.7, 0.5, 0.35)
# The schedule of a new state, and that of a state carried over from the last generation.
_FIRST, _NEXT = "120*raar(0.87) 20*er", "20*raar(0.87) 10*er"
# Upper bound of the relative intensity; anything brighter is taken for an error.
_BRIGHTEST = 5.0


@dataclass(eq=False)
class LoopPhasing:
    """The densities of one model of one half.

    grid : of the model.
    envelope : radial envelope by which intensities were divided.
    measured_inv_A : smallest and largest \\|q\\| of the pixels.
    settings : symmetry and diameter of the particle.
    first : (n, n, n) the first autocorrelation, which gives the first supports; None before it.
    state : B densities in progress, one for each volume; None before the first generation.
    best : the density that predicts the frames of the other half best.
    """

    grid: RelativeGrid
    envelope: RadialProfile
    measured_inv_A: tuple[float, float]
    settings: PhaseSettings
    seed: int
    first: Array = None
    state: PhaseState | None = None
    best: int = 0

    def follow(self, autocorrelation: Array) -> Array:
        """Continue phasing with the amplitudes of a new autocorrelation (n, n, n).

        Returns the relative autocorrelations (B, n, n, n) float64 of the new densities.
        """
        if self.first is None:
            self.first = autocorrelation
        course = Course.of(self._data(autocorrelation), self.settings)
        if self.state is None:
            volume = np.array(_VOLUMES) * course.first_volume
            self.state = course.start(range(len(volume)), volume, self.seed)
            course.run(self.state, parse_schedule(_FIRST), lambda done: None)
        else:
            course.renew(self.state, self.state.volume, LAST_BLUR, 0)
            course.run(self.state, parse_schedule(_NEXT), lambda done: None)
        return self._of_densities(course.estimate(self.state))

    def chosen(self) -> tuple[Array, Array] | None:
        """The density (m, m, m) that predicts the other half best, and its support; None: none yet."""
        if self.state is None:
            return None
        # The last iterations of every generation leave density only inside the support.
        support = self.state.support[self.best]
        return self.state.density[self.best] * support, support

    @property
    def measured(self) -> Array:
        """(m, m, m // 2 + 1) bool, voxels that pixels have measured."""
        return self._known.measured

    def arrays(self) -> dict[str, Any]:
        """The arrays that the next generation depends on; empty before the first."""
        if self.state is None:
            return {}
        names = ("density", "support", "background")
        return {
            **{name: to_numpy(getattr(self.state, name)) for name in names},
            "volume": self.state.volume,
            "best": self.best,
            "first": to_numpy(self.first),
        }

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Continue from the result of ``arrays``."""
        xp = array_namespace(self.grid.support)
        density, support, background = (xp.asarray(arrays[n]) for n in ("density", "support", "background"))
        volume = np.array(arrays["volume"], dtype=np.float64)
        self.first, self.best = xp.asarray(arrays["first"]), int(arrays["best"])
        self.state = PhaseState(density, support, background, volume, self.settings.positivity)

    def _of_densities(self, densities: Array) -> Array:
        """(B, n, n, n) float64 relative autocorrelations of densities.

        The quotient of intensity and envelope has a wider transform than the intensity itself.  So it is
        transformed in the box of the model, unless the box of the densities is larger.
        """
        xp = array_namespace(densities)
        own, is_wide = densities.shape[-1], self.grid.box >= densities.shape[-1]
        grid, envelope = (
            (self.grid, self._envelope_of_grid) if is_wide else (self.coarse, self._envelope_of_coarse)
        )
        m = grid.box
        box = xp.zeros((m, m, m), dtype=xp.float64)
        found = []
        for density in densities:
            box[:own, :own, :own] = density  # a shift does not change the intensity
            transform = transform_of(box)
            relative = xp.minimum((transform.real**2 + transform.imag**2) / envelope, _BRIGHTEST)
            found.append(grid.autocorrelation_of_half(relative) * self.grid.support)
        return xp.stack(found)

    @cached_property
    def coarse(self) -> RelativeGrid:
        """The same autocorrelation in the smallest box that a density can be phased in."""
        return coarse_grid(self.grid)

    def _data(self, autocorrelation: Array) -> PhasingData:
        """Data for phasing, with the amplitudes of an autocorrelation."""
        known = self._known
        xp = array_namespace(known.amplitudes)
        relative = self.coarse.intensity_of_half(autocorrelation).clip(0, _BRIGHTEST)
        amplitudes = xp.sqrt(relative * self._envelope_of_coarse).astype(xp.float32) * known.measured
        target = xp.where(known.measured, amplitudes, known.target)
        return replace(known, amplitudes=amplitudes, target=target)

    @cached_property
    def _known(self) -> PhasingData:
        """The constant part of the data: measured voxels, and the shape of the first autocorrelation."""
        coarse = self.coarse
        length = distances(centred_axis(coarse.edge, coarse.voxel_inv_A))
        intensity = to_numpy(coarse.intensity(self.first)).clip(0, _BRIGHTEST) * self.envelope(length)
        low, high = self.measured_inv_A
        half = coarse.voxel_inv_A / 2  # a pixel measures voxels up to half a voxel away
        intensity[(length < low - half) | (length > high + half)] = np.nan
        volume = Volume(intensity.astype(np.float32), coarse.voxel_inv_A, "reciprocal")
        known = phasing_data(volume, self.settings, seed=self.seed, device=self.grid.device)
        assert known.n == coarse.box
        return known.with_all_voxels()

    @cached_property
    def _envelope_of_coarse(self) -> Array:
        return self._envelope(self.coarse)

    @cached_property
    def _envelope_of_grid(self) -> Array:
        return self._envelope(self.grid)

    def _envelope(self, grid: RelativeGrid) -> Array:
        """The envelope (m, m, m // 2 + 1) on the box of a grid, in the order of a real FFT."""
        length = radii(grid.box) * grid.voxel_inv_A
        return to_device(self.envelope(length), self.grid.device)


def coarse_grid(grid: RelativeGrid) -> RelativeGrid:
    """A grid for the same voxels of the autocorrelation in a box of about 2.2 diameters."""
    m = fast_length(int(np.ceil(_BOX * grid.reach_A / grid.voxel_A)))
    while fast_length(m - 1 + m % 2) != m:
        m = fast_length(m + 1)
    # With few voxels across a speckle, the model's box is too small for the whole autocorrelation.
    reach_A = min(grid.reach_A, (grid.n // 2 + 0.999) * grid.voxel_A)
    return RelativeGrid(m - 1 + m % 2, 1 / (m * grid.voxel_A), reach_A, grid.device)
