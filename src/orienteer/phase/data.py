"""The data of phasing: amplitudes on the grid of the FFT, their errors, and which voxels are unknown.

Unknown voxels are never set to zero.  Those in the hole at the centre are free up to a bound, because a
smooth density of any height could hide there; all others, such as those beyond the edge of the data, are
free.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.distances import centred_axis, squared_distances
from orienteer.compare.symmetrising import symmetrised
from orienteer.compute.arrays import Array, DeviceName, array_namespace, choose_device, to_device, to_numpy
from orienteer.compute.fast_length import fast_length
from orienteer.errors import OrienteerError
from orienteer.orientation.point_group import as_point_group
from orienteer.phase.autocorrelation import Autocorrelation, autocorrelation_of, noise_of
from orienteer.phase.fewer_voxels import with_fewer_voxels
from orienteer.phase.half_grid import frequencies, radii
from orienteer.phase.held_out import choose_held_out
from orienteer.phase.hole import hole_bound, hole_of_data
from orienteer.phase.settings import PhaseSettings
from orienteer.phase.sizes import refuse_impossible_sizes
from orienteer.volume.friedel import friedel_completed
from orienteer.volume.volume import Volume

# Least voxels along an edge: a smaller cube contains only a few speckles.
LEAST_VOXELS = 12


@dataclass(frozen=True, eq=False)
class PhasingData:
    """Amplitudes of an intensity on the half-grid (n, n, n // 2 + 1) of a real FFT, in its order.

    amplitudes : float32, the square root of the intensity; 0 where it was not measured.
    measured : bool, voxels that were measured, held-out ones included.
    choosing : bool, measured voxels held out from the iterations, which choose among their results.
    judging : bool, measured voxels held out from the iterations and from every choice.
    sigma : float32, standard error of the intensity; 0 where it was not measured.
    target : float32, what the iterations use: the amplitude of a voxel, or minus the bound of an unknown one
        (minus infinity if it has no bound).
    n : voxels along the edge of the box.
    voxel_A : edge of a voxel of the density, A; the box is n * voxel_A = 1 / voxel of the intensity.
    diameter_A : largest extent of the particle, given or found.
    edge_A : full-period resolution of the outermost measured voxel.
    autocorrelation : size and shape of the particle from the transform of the intensity.
    """

    amplitudes: Array
    measured: Array
    choosing: Array
    judging: Array
    sigma: Array
    target: Array
    n: int
    voxel_A: float
    diameter_A: float
    edge_A: float
    autocorrelation: Autocorrelation

    @property
    def box_A(self) -> float:
        """Edge of the box, A."""
        return self.n * self.voxel_A

    @property
    def held_out(self) -> Array:
        """Measured voxels that the iterations do not see."""
        return self.choosing | self.judging

    @property
    def device(self) -> DeviceName:
        """The device that holds the arrays."""
        return "cpu" if isinstance(self.amplitudes, np.ndarray) else "cuda"

    def to(self, device: DeviceName) -> "PhasingData":
        """The same data in the memory of the device."""
        arrays = ("amplitudes", "measured", "choosing", "judging", "sigma", "target")
        return replace(self, **{name: to_device(getattr(self, name), device) for name in arrays})

    def with_all_voxels(self) -> "PhasingData":
        """The same data with nothing held out, to polish densities that have been judged."""
        xp = array_namespace(self.amplitudes)
        target = xp.where(self.measured, self.amplitudes, self.target)
        nothing = xp.zeros_like(self.choosing)
        return replace(self, target=target, choosing=nothing, judging=nothing)


def phasing_data(
    intensity: Volume,
    settings: PhaseSettings | None = None,
    *,
    seed: int = 0,
    device: DeviceName = "auto",
) -> PhasingData:
    """Prepare an intensity for phasing.

    intensity : cubic, in reciprocal space, its centre at the voxel n // 2; NaN where it was never measured.
    seed : of the choice of held-out voxels.
    """
    settings = settings or PhaseSettings()
    cube, voxel_inv_A = _checked(intensity)
    cube = friedel_completed(cube)
    group = as_point_group(settings.symmetry)
    if group.order > 1:
        cube = symmetrised(cube, group)
    if settings.resolution_A:
        cube = _cut_at(cube, 1 / settings.resolution_A / voxel_inv_A, settings.resolution_A)
    n, values, measured = _with_mask(cube)
    diameter_A = settings.diameter_A or told_diameter_A(intensity)
    box_A = 1 / voxel_inv_A
    with ThreadPoolExecutor() as pool:
        looking = pool.submit(autocorrelation_of, values, measured, box_A, diameter_A)
        # Wait for the autocorrelation only if the diameter is not known.
        told_A = diameter_A or looking.result().diameter_A
        noise = pool.submit(noise_of, values, measured, told_A / box_A)
        becoming_fewer = pool.submit(with_fewer_voxels, cube, voxel_inv_A, told_A)
        found = looking.result()
        outermost = float(radii(n)[measured].max()) * voxel_inv_A
        refuse_impossible_sizes(found.diameter_A, box_A, 1 / outermost, found.seen_A)
        sigma, fewer = noise.result(), becoming_fewer.result()
    if fewer is not None:
        fine = radii(n)[measured] * voxel_inv_A, sigma[measured]
        n, values, measured = _with_mask(fewer.cube)
        voxel_inv_A = fewer.voxel_inv_A
        sigma = _radial(*fine, radii(n) * voxel_inv_A) * fewer.noise
        again = autocorrelation_of(values, measured, 1 / voxel_inv_A, found.diameter_A)
        found = replace(again, is_found=found.is_found, seen_A=found.seen_A)
    radius = radii(n)
    amplitudes = np.sqrt(np.maximum(values, 0)).astype(np.float32)
    speckle = 1 / (found.diameter_A * voxel_inv_A)  # in voxels
    choosing, judging = choose_held_out(measured, speckle, settings.held_out, seed, group)
    target = np.where(measured, amplitudes, -np.inf)
    hole = hole_of_data(measured)
    if hole.any():
        target[hole] = -hole_bound(values, measured, found.diameter_A * voxel_inv_A)
    target[choosing | judging] = -np.inf
    data = PhasingData(
        amplitudes=amplitudes,
        measured=measured,
        choosing=choosing,
        judging=judging,
        sigma=np.where(measured, sigma, 0).astype(np.float32),
        target=target.astype(np.float32),
        n=n,
        voxel_A=1 / (n * voxel_inv_A),
        diameter_A=found.diameter_A,
        edge_A=1 / (float(radius[measured].max()) * voxel_inv_A),
        autocorrelation=found,
    )
    return data.to(choose_device(device))


def told_diameter_A(intensity: Volume) -> float:
    """The diameter of the particle from the metadata of the intensity; 0 if they have none.

    A reconstruction finds it from single frames, better than it follows from the intensity: in the
    autocorrelation, whatever a filter leaves beyond the particle looks like part of it.
    """
    told = intensity.metadata.get("diameter_A", 0.0)
    is_length = isinstance(told, (int, float)) and np.isfinite(told) and told > 0
    return float(told) if is_length else 0.0


def _with_mask(cube: NDArray[np.float64]) -> tuple[int, NDArray[np.float64], NDArray[np.bool_]]:
    """For a cube: voxels along the edge of its box, its values on the half-grid, and which are measured."""
    n = fast_length(len(cube))
    values = _on_half_grid(cube, n)
    measured = np.isfinite(values)
    return n, np.where(measured, values, 0), measured


def _radial(
    length: NDArray[np.float64], values: NDArray[np.float64], at: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The mean of values (V,) as a function of their lengths (V,), interpolated at other lengths."""
    order = np.argsort(length, kind="stable")
    bins = np.array_split(order, max(1, min(200, len(order) // 50)))
    middle, mean = (np.array([x[part].mean() for part in bins]) for x in (length, values))
    return np.asarray(np.interp(at, middle, mean))


def _checked(intensity: Volume) -> tuple[NDArray[np.float64], float]:
    """The values (n, n, n) and the voxel size in 1/A of an intensity, checked that it can be phased."""
    if intensity.space != "reciprocal":
        raise OrienteerError(
            "phasing needs an intensity in reciprocal space, but this volume lies in real space.",
            "Give the intensity of a reconstruction; a density needs no phasing.",
        )
    if len(set(intensity.shape)) != 1:
        raise OrienteerError(
            f"phasing needs a cube of voxels, not {' x '.join(map(str, intensity.shape))}.",
            "Crop or pad the volume to a cube, with NaN where nothing was measured.",
        )
    n, voxel = intensity.shape[0], intensity.voxel_size[0]
    if max(intensity.voxel_size) - min(intensity.voxel_size) > 1e-4 * voxel:
        raise OrienteerError(
            f"phasing needs cubic voxels, not voxels of {intensity.voxel_size} 1/A.",
            "Write the intensity on a grid with the same step along all axes.",
        )
    if n < LEAST_VOXELS:
        raise OrienteerError(
            f"a cube of {n} voxels along an edge is too small to phase; {LEAST_VOXELS} or more are needed.",
            "Give an intensity on a larger grid.",
        )
    if np.abs(np.asarray(intensity.origin) + n // 2 * voxel).max() > 0.05 * voxel:
        raise OrienteerError(
            f"q = 0 must lie at voxel {n // 2} of each axis, but the origin of the volume says otherwise.",
            "If the centre of the intensity is at that voxel, remove the origin from the file.",
        )
    values = to_numpy(intensity.values).astype(np.float64)
    known = np.isfinite(values)
    if not known.any():
        raise OrienteerError(
            "all voxels of the intensity are NaN: nothing was measured.",
            "Give another model, or reconstruct with more frames.",
        )
    if known.sum() < 0.05 * np.pi / 6 * n**3:
        raise OrienteerError(
            f"only {known.sum()} of {n**3} voxels of the intensity were measured: too few to phase.",
            "Reconstruct with more frames, or to a coarser resolution.",
        )
    if not (values[known] > 0).any():
        raise OrienteerError(
            "the intensity is nowhere positive: there is nothing to phase.",
            "Give another model, or look at this one with: orienteer inspect",
        )
    return values, voxel


def _trimmed(cube: NDArray[np.float64], edge: int) -> NDArray[np.float64]:
    """The middle of a cube of odd edge, cropped to another odd edge."""
    cut = (len(cube) - edge) // 2
    return cube[cut : len(cube) - cut, cut : len(cube) - cut, cut : len(cube) - cut]


def _cut_at(cube: NDArray[np.float64], edge: float, resolution_A: float) -> NDArray[np.float64]:
    """The cube cropped to a radius of ``edge`` voxels, with NaN beyond it."""
    half = min(len(cube) // 2, int(edge))
    if half < LEAST_VOXELS // 2:
        raise OrienteerError(
            f"at a resolution of {resolution_A:g} A only {half} voxels are left from the centre to the edge.",
            "Ask for a finer resolution.",
        )
    cube = _trimmed(cube, 2 * half + 1)
    beyond = squared_distances(centred_axis(2 * half + 1)) > edge**2
    return np.where(beyond, np.nan, cube)


def _on_half_grid(cube: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """A centred cube of odd edge on the half-grid of a box of n voxels; NaN outside the cube."""
    half = len(cube) // 2
    whole, positive = frequencies(n)
    x = np.flatnonzero(np.abs(whole) <= half)
    z = np.flatnonzero(positive <= half)
    # At the highest frequency of an even box, q and -q are one voxel; the cube must end before it.
    assert n > 2 * half
    result = np.full((n, n, n // 2 + 1), np.nan)
    places = whole[x].astype(int) + half
    result[np.ix_(x, x, z)] = cube[np.ix_(places, places, positive[z].astype(int) + half)]
    return result
