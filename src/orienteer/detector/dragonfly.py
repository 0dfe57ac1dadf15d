"""Dragonfly detectors: scattering vectors in voxels, a correction and a mask per pixel, as text or HDF5.

The format holds directions and no lengths: the first line of the text (or the scalars ``detd`` and
``ewald_rad``) gives the distance in pixels and the radius of the Ewald sphere in voxels, so a pixel size has
to be assumed.  ``corr`` is solid angle × polarisation × efficiency; the reader takes the polarisation that
explains it best.  The polarisation belongs to the beam, so the :class:`GeometryFile` holds it and not the
detector.  The frame of a detector that is a regular grid has two axes, x slow and y fast, because Dragonfly
numbers its pixels in this order.
"""

from os import PathLike
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from orienteer.compute.atomic import atomic_path
from orienteer.compute.hdf5_reading import read_whole
from orienteer.compute.hdf5_writing import new_hdf5
from orienteer.compute.reading import reading
from orienteer.detector.detector import POLARISATIONS, Detector, Polarisation
from orienteer.detector.ewald import distance_from_sphere, fit_ewald_radius, positions_on_plane
from orienteer.detector.geometry_file import GeometryFile
from orienteer.detector.masks import PixelUse, check_mask
from orienteer.detector.panel import LARGEST_N_PIXELS
from orienteer.detector.pixel_list import panel_through, pixel_list
from orienteer.errors import FileError, OrienteerError

DEFAULT_PIXEL_SIZE_M = 1e-4


def looks_like_dragonfly_text(text: str) -> bool:
    """Whether a text starts with a line of one or three numbers and a line of five."""
    lines = [line.split() for line in text.splitlines()[:2]]
    return (
        len(lines) == 2
        and len(lines[0]) in (1, 3)
        and len(lines[1]) == 5
        and all(_is_number(word) for line in lines for word in line)
    )


def dragonfly_text_geometry(path: str | PathLike[str], pixel_size_m: float | None = None) -> GeometryFile:
    """The detector of a Dragonfly ``.dat`` file with the polarisation that its ``corr`` holds.

    Line 1 of old files has only the number of pixels.
    """
    path = Path(path)
    with reading(path, "geometry file"), path.open(encoding="ascii") as file:
        header = file.readline(1000).split()
        if len(header) not in (1, 3) or not all(_is_number(word) for word in header):
            raise FileError(
                path,
                "line 1 must hold the number of pixels, alone or with detd and ewald_rad.",
                "Give the detector file that Dragonfly was run with.",
            )
        declared = float(header[0])
        # The shortest pixel line has ten characters, so the file's size bounds an honest count.
        if not declared.is_integer() or not 0 < declared <= min(LARGEST_N_PIXELS, path.stat().st_size / 10):
            raise FileError(
                path,
                f"line 1 declares {header[0]} pixels, which the file cannot hold.",
                "Give the whole file; this one may have been cut off.",
            )
        rows = np.loadtxt(file, dtype=np.float64, ndmin=2, comments=None, max_rows=int(declared) + 1)
        if rows.shape != (int(declared), 5):
            raise FileError(
                path,
                f"line 1 declares {int(declared)} pixels; a table {rows.shape[0]} x {rows.shape[1]} follows.",
                "A Dragonfly detector has five numbers per pixel: qx qy qz corr mask.",
            )
        if not np.all(rows[:, 4] == np.clip(np.round(rows[:, 4]), 0, 2)):
            raise FileError(
                path,
                "the last column must hold mask levels 0, 1 or 2.",
                "0: orient and merge; 1: merge only; 2: never use.",
            )
        detd, ewald_rad = (float(header[1]), float(header[2])) if len(header) == 3 else (None, None)
        return _from_fields(
            rows[:, :3], rows[:, 3], rows[:, 4].astype(np.uint8), detd, ewald_rad, pixel_size_m, path.stem
        )


def holds_dragonfly_detector(group: h5py.Group) -> bool:
    """Whether an HDF5 group has the fields of a Dragonfly detector."""
    return all(name in group for name in ("qx", "qy", "qz", "corr", "mask"))


def dragonfly_group_geometry(group: h5py.Group, pixel_size_m: float | None = None) -> GeometryFile:
    """The detector of a Dragonfly HDF5 file with the polarisation that its ``corr`` holds.

    Fields of any shape are flattened.
    """
    path = group.file.filename
    with reading(path):
        qx = read_whole(group, "qx", "iuf", None, LARGEST_N_PIXELS)
        if not qx.size:
            raise FileError(
                path, "the detector has no pixels.", "Give the detector file that Dragonfly was run with."
            )
        qy, qz, corr = (
            read_whole(group, name, "iuf", qx.shape, LARGEST_N_PIXELS) for name in ("qy", "qz", "corr")
        )
        mask = read_whole(group, "mask", "iu", qx.shape, LARGEST_N_PIXELS)
        scalars = {
            name: float(read_whole(group, name, "iuf", None, 1).reshape(-1)[0]) if name in group else None
            for name in ("detd", "ewald_rad")
        }
        q = np.stack([qx.reshape(-1), qy.reshape(-1), qz.reshape(-1)], axis=1).astype(np.float64)
        return _from_fields(
            q,
            corr.reshape(-1).astype(np.float64),
            check_mask(mask, mask.shape),
            scalars["detd"],
            scalars["ewald_rad"],
            pixel_size_m,
            Path(path).stem,
        )


def write_dragonfly_text(
    path: str | PathLike[str],
    detector: Detector,
    polarisation: Polarisation = "x",
    ewald_radius_voxels: float | None = None,
) -> None:
    """Write a Dragonfly ``.dat`` detector; ``ewald_radius_voxels`` is by default the distance in pixels."""
    fields = _to_fields(detector, polarisation, ewald_radius_voxels)
    table = np.column_stack([fields["qx"], fields["qy"], fields["qz"], fields["corr"]])
    with atomic_path(path) as part, part.open("w", encoding="ascii") as file:
        file.write(f"{detector.n_pixels} {float(fields['detd'])!r} {float(fields['ewald_rad'])!r}\n")
        for row, level in zip(table, detector.mask, strict=True):
            # 17 digits are needed to read the same double again.
            file.write(" ".join(f"{value:23.16e}" for value in row) + f" {int(level)}\n")


def write_dragonfly_hdf5(
    path: str | PathLike[str],
    detector: Detector,
    polarisation: Polarisation = "x",
    ewald_radius_voxels: float | None = None,
) -> None:
    """Write a Dragonfly HDF5 detector; ``ewald_radius_voxels`` is by default the distance in pixels."""
    fields = _to_fields(detector, polarisation, ewald_radius_voxels)
    with new_hdf5(path) as file:
        for name, values in fields.items():
            file.create_dataset(name, data=values)
        file.create_dataset("mask", data=detector.mask)


def _to_fields(
    detector: Detector, polarisation: Polarisation, ewald_radius_voxels: float | None
) -> dict[str, NDArray[np.float64]]:
    areas_m2 = detector.solid_angle_sr * np.einsum("pi,pi->p", detector.positions_m, detector.positions_m)
    flat_areas_m2 = areas_m2[detector.covered] / np.abs(detector.directions[detector.covered, 2])
    if not detector.covered.any() or detector.distance_m <= 0:
        raise OrienteerError(
            f"detector '{detector.name}' is not behind the sample, as a Dragonfly detector must be.",
            "Write .h5 or .geom, which hold any detector.",
        )
    detd = detector.distance_m / float(np.sqrt(np.median(flat_areas_m2)))
    radius = detd if ewald_radius_voxels is None else float(ewald_radius_voxels)
    if not 0 < radius < np.inf:
        raise OrienteerError(f"ewald_radius_voxels is {ewald_radius_voxels}; expected a positive number.")
    qx, qy, qz = (radius * detector.ewald_vectors).T
    corr = detector.correction(polarisation)
    return {
        "qx": qx,
        "qy": qy,
        "qz": qz,
        "corr": corr,
        "detd": np.float64(detd),
        "ewald_rad": np.float64(radius),
    }


def _from_fields(
    q: NDArray[np.float64],
    corr: NDArray[np.float64],
    mask: NDArray[np.uint8],
    detd: float | None,
    ewald_rad: float | None,
    pixel_size_m: float | None,
    name: str,
) -> GeometryFile:
    if not np.all(np.isfinite(q)) or not np.all(np.isfinite(corr)) or corr.min() < 0:
        raise OrienteerError("qx, qy, qz and corr must be finite, and corr not negative.")
    radius = _ewald_radius(q, ewald_rad)
    distance_pixels = radius if detd is None else detd  # Dragonfly's own default has them equal
    pixel_size_m = DEFAULT_PIXEL_SIZE_M if pixel_size_m is None else pixel_size_m
    if not 0 < distance_pixels < np.inf or not 0 < pixel_size_m < np.inf:
        raise OrienteerError(
            f"the distance is {distance_pixels} pixels of {pixel_size_m} m; both must be positive and finite."
        )
    positions_m = positions_on_plane(q, radius, distance_pixels) * pixel_size_m
    real = (mask < PixelUse.NEVER) | (corr > 0) | q.any(axis=1)
    grid = _as_grid(positions_m, pixel_size_m) if real.all() else None
    panel = None if grid is None else panel_through(grid, name="p0", tolerance=1e-9)
    if panel is not None:
        detector = Detector([panel], mask=mask, name=name)
    else:
        detector = Detector(
            pixels=pixel_list(positions_m, np.where(real, pixel_size_m**2, 0)), mask=mask, name=name
        )
    efficiency, polarisation = _efficiency(detector, corr)
    return GeometryFile(detector.with_efficiency(efficiency), polarisation=polarisation)


def _ewald_radius(q: NDArray[np.float64], ewald_rad: float | None) -> float:
    """The stored radius if it fits the vectors exactly, else (old or rounded headers) a fitted one."""
    stored_is_good = ewald_rad is not None and 0 < ewald_rad < np.inf
    if stored_is_good and (not q[:, 2].any() or distance_from_sphere(q, float(ewald_rad or 0)) < 1e-9):
        return float(ewald_rad or 0)
    fitted = fit_ewald_radius(q)
    if fitted is None:
        raise OrienteerError(
            "the scattering vectors are flat, so the Ewald sphere is unknown.", "Give ewald_rad in line 1."
        )
    if distance_from_sphere(q, fitted) > 1e-4:
        raise OrienteerError("the scattering vectors do not lie on an Ewald sphere.")
    return fitted


def _as_grid(positions_m: NDArray[np.float64], pixel_size_m: float) -> NDArray[np.float64] | None:
    """Positions (P, 3) as (n_slow, n_fast, 3); the first jump between neighbours ends the first fast line."""
    steps = np.diff(positions_m, axis=0)
    jumps = np.flatnonzero(np.abs(steps - steps[:1]).max(axis=1, initial=0.0) > 0.5 * pixel_size_m)
    n_fast = int(jumps[0]) + 1 if len(jumps) else len(positions_m)
    return positions_m.reshape(-1, n_fast, 3) if len(positions_m) % n_fast == 0 else None


def _efficiency(
    detector: Detector, corr: NDArray[np.float64]
) -> tuple[NDArray[np.float64] | None, Polarisation]:
    """What ``corr`` holds beyond solid angle × polarisation, and the polarisation that explains it best."""
    covered = detector.covered

    def ratio(kind: Polarisation) -> NDArray[np.float64]:
        values = np.ones(detector.n_pixels)
        values[covered] = corr[covered] / detector.correction(kind)[covered]
        return values

    def spread(kind: Polarisation) -> float:
        values = ratio(kind)[covered]
        return float(values.std()) / max(float(values.mean()), 1e-300)

    best = min(POLARISATIONS, key=spread)
    efficiency = ratio(best)
    return (None if np.abs(efficiency - 1).max() < 1e-9 else efficiency), best


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
