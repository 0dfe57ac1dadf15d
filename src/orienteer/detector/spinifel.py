"""SpiniFEL's HDF5 fields: scattering vectors in 1/m, solid angle and polarisation per pixel.

The vectors lie on an Ewald sphere, so the wavelength follows from their curvature; the distance is the
attribute ``det_distance`` or an argument.  The pixels are assumed to lie at that distance in a plane square
to the beam.
"""

from math import prod
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from orienteer.compute.hdf5_reading import read_numbers, read_whole
from orienteer.compute.reading import reading
from orienteer.detector.detector import Detector, Polarisation, check_wavelength
from orienteer.detector.ewald import distance_from_sphere, fit_ewald_radius, positions_on_plane
from orienteer.detector.geometry_file import GeometryFile
from orienteer.detector.masks import check_mask
from orienteer.detector.panel import LARGEST_N_PIXELS, Panel
from orienteer.detector.pixel_list import panel_through, pixel_list
from orienteer.detector.polarisation import polarisation_of
from orienteer.errors import OrienteerError

POSITIONS = "pixel_position_reciprocal"
A_PER_M = 1e10


def holds_spinifel_detector(group: h5py.Group) -> bool:
    """Whether an HDF5 group has SpiniFEL's pixel positions."""
    return isinstance(group.get(POSITIONS), h5py.Dataset)


def spinifel_geometry(
    group: h5py.Group, wavelength_A: float | None = None, distance_m: float | None = None
) -> GeometryFile:
    """The detector of a SpiniFEL file with its wavelength and the polarisation that its factors imply.

    wavelength_A : needed only if the vectors are flat; if they are curved it must agree with them.
    distance_m : by default the attribute ``det_distance``, else 1 m (only directions matter).
    """
    with reading(group.file.filename):
        q_inv_m, frame_shape = _read_vectors(group)
        fine = q_inv_m.dtype == np.float64
        q_inv_m = q_inv_m.astype(np.float64)
        radius_inv_m = _ewald_radius_inv_m(q_inv_m, wavelength_A)
        distance_m = _distance_m(group) if distance_m is None else distance_m
        if not 0 < distance_m < np.inf:
            raise OrienteerError(f"the distance {distance_m} m is not a positive length.")
        positions_m = positions_on_plane(q_inv_m, radius_inv_m, distance_m)
        solid_angle = _read_per_pixel(group, "solid_angle", "iuf", frame_shape)
        mask = _read_per_pixel(group, "mask", "iu", frame_shape)
        real = np.ones(len(q_inv_m), bool) if solid_angle is None else (solid_angle > 0) | q_inv_m.any(axis=1)
        panels = _panels_through(positions_m, frame_shape, 1e-9 if fine else 1e-3) if real.all() else None
        name = Path(group.file.filename).stem
        if panels is None:
            areas_m2 = np.where(real, _areas_m2(positions_m, frame_shape, solid_angle, distance_m), 0)
            detector = Detector(pixels=pixel_list(positions_m, areas_m2), frame_shape=frame_shape, name=name)
        else:
            detector = Detector(panels, frame_shape=frame_shape, name=name)
        if mask is not None:
            detector = detector.with_mask(check_mask(mask, (detector.n_pixels,)))
        detector = detector.with_efficiency(_efficiency(detector, solid_angle, 1e-9 if fine else 1e-4))
        factors = _read_per_pixel(group, "polarization", "f", frame_shape)
        kind = None if factors is None else polarisation_of(factors.astype(np.float64), detector)
        return GeometryFile(detector, wavelength_A=A_PER_M / radius_inv_m, polarisation=kind)


def spinifel_wavelength_A(group: h5py.Group) -> float | None:
    """The wavelength in Å from the curvature of the vectors of a SpiniFEL file; None if they are flat."""
    with reading(group.file.filename):
        radius_inv_m = fit_ewald_radius(_read_vectors(group)[0].astype(np.float64))
    return None if radius_inv_m is None else A_PER_M / radius_inv_m


def write_spinifel_group(
    group: h5py.Group, detector: Detector, wavelength_A: float, polarisation: Polarisation = "x"
) -> None:
    """Write the geometry fields of a SpiniFEL file; efficiency is folded into ``solid_angle``.

    The arrays are (panels, slow, fast): a frame with two axes gains a leading axis of length 1, a frame with
    one axis gains two.  ``mask`` is an addition of Orienteer; SpiniFEL ignores it.
    """
    shape = (1, 1, *detector.frame_shape)[-max(3, len(detector.frame_shape)) :]
    q_inv_m = detector.q_inv_A(wavelength_A) * A_PER_M
    efficiency = 1.0 if detector.efficiency is None else detector.efficiency
    group.create_dataset(POSITIONS, data=q_inv_m.reshape(*shape, 3))
    group.create_dataset("pixel_index_map", data=_pixel_index_map(detector).reshape(*shape, 2))
    group.create_dataset("polarization", data=detector.polarisation(polarisation).reshape(shape))
    group.create_dataset("solid_angle", data=(detector.solid_angle_sr * efficiency).reshape(shape))
    group.create_dataset("mask", data=detector.mask.reshape(shape))
    group.attrs["det_distance"] = detector.distance_m
    group.attrs["det_shape"] = np.array(shape, dtype=np.int64)
    group.attrs["reciprocal_extent"] = float(np.linalg.norm(q_inv_m, axis=1).max())


def _pixel_index_map(detector: Detector) -> NDArray[np.int64]:
    """(P, 2) column (x) and row (y) of each pixel in the assembled picture, as Skopi's ``img[ix, iy]``."""
    assembly = detector.assembly
    ix = np.rint((detector.positions_m[:, 0] - assembly.x_m[0]) / assembly.cell_m)
    iy = np.rint((detector.positions_m[:, 1] - assembly.y_m[0]) / assembly.cell_m)
    columns = np.clip(ix, 0, len(assembly.x_m) - 1)
    rows = np.clip(iy, 0, len(assembly.y_m) - 1)
    return np.stack([columns, rows], axis=1).astype(np.int64)


def _read_vectors(group: h5py.Group) -> tuple[NDArray[Any], tuple[int, ...]]:
    """Scattering vectors (P, 3) in 1/m and the shape of a frame, from either order of the axes."""
    vectors = read_whole(group, POSITIONS, "f", None, 3 * LARGEST_N_PIXELS)
    if vectors.ndim < 2 or 3 not in (vectors.shape[-1], vectors.shape[0]) or not vectors.size:
        raise OrienteerError(f"{POSITIONS} has shape {vectors.shape}; expected (..., 3) or (3, ...).")
    if vectors.shape[-1] != 3:
        vectors = np.moveaxis(vectors, 0, -1)
    return vectors.reshape(-1, 3), vectors.shape[:-1]


def _ewald_radius_inv_m(q_inv_m: NDArray[np.float64], wavelength_A: float | None) -> float:
    fitted = fit_ewald_radius(q_inv_m)
    radius = fitted if wavelength_A is None else A_PER_M / check_wavelength(wavelength_A)
    if radius is None:
        raise OrienteerError(f"{POSITIONS} is flat, so the wavelength is unknown.", "Give wavelength_A.")
    if fitted is not None and distance_from_sphere(q_inv_m, radius) > 1e-3:
        raise OrienteerError(
            f"{POSITIONS} does not lie on the Ewald sphere of {A_PER_M / radius:.5g} Å.",
            f"Its curvature belongs to {A_PER_M / fitted:.5g} Å.",
        )
    return radius


def _distance_m(group: h5py.Group) -> float:
    return float(read_numbers(group, "det_distance")) if "det_distance" in group.attrs else 1.0


def _read_per_pixel(
    group: h5py.Group, name: str, kinds: str, frame_shape: tuple[int, ...]
) -> NDArray[Any] | None:
    if name not in group:
        return None
    values = read_whole(group, name, kinds, None, LARGEST_N_PIXELS)
    if values.size != prod(frame_shape):
        raise OrienteerError(f"'{name}' has shape {values.shape}; the pixels have {frame_shape}.")
    return values.reshape(-1)


def _panels_through(
    positions_m: NDArray[np.float64], frame_shape: tuple[int, ...], tolerance: float
) -> list[Panel] | None:
    """One panel for each (slow, fast) part of the frame, or None if a part is not a regular grid."""
    if len(frame_shape) < 2:
        return None
    parts = positions_m.reshape(-1, *frame_shape[-2:], 3)
    panels: list[Panel] = []
    for k, part in enumerate(parts):
        panel = panel_through(part, f"p{k}", tolerance)
        if panel is None:
            return None
        panels.append(
            Panel(
                panel.name,
                panel.origin_m,
                panel.fast_m,
                panel.slow_m,
                panel.shape,
                first_pixel=k * panel.n_pixels,
            )
        )
    return panels


def _areas_m2(
    positions_m: NDArray[np.float64],
    frame_shape: tuple[int, ...],
    solid_angle: NDArray[Any] | None,
    distance_m: float,
) -> NDArray[np.float64]:
    """Areas (P,) from the solid angles if they are stored, else from the distances between neighbours."""
    if solid_angle is not None:
        cubed = np.einsum("pi,pi->p", positions_m, positions_m) ** 1.5
        return np.asarray(np.clip(solid_angle, 0, None) * cubed / distance_m)
    if len(frame_shape) < 2 or min(frame_shape[-2:]) < 2:
        raise OrienteerError(
            "the file has no solid_angle and its pixels form no grid, so their size is unknown.",
            "Give the detector with --geometry.",
        )
    parts = positions_m.reshape(-1, *frame_shape[-2:], 3)
    slow, fast = np.gradient(parts, axis=1), np.gradient(parts, axis=2)
    return np.asarray(np.linalg.norm(np.cross(slow, fast), axis=-1).reshape(-1))


def _efficiency(
    detector: Detector, solid_angle: NDArray[Any] | None, tolerance: float
) -> NDArray[np.float64] | None:
    if solid_angle is None:
        return None
    if not np.all(np.isfinite(solid_angle)) or solid_angle.min() < 0:
        raise OrienteerError("'solid_angle' must be finite and not negative.")
    ratio = np.ones(detector.n_pixels)
    lit = detector.solid_angle_sr > 0
    ratio[lit] = solid_angle[lit] / detector.solid_angle_sr[lit]
    return None if np.abs(ratio - 1).max() < tolerance else ratio
