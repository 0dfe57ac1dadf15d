"""Writing CrystFEL ``.geom`` files.

Kept: panels, groups, collections and the pixels that are never used (as bad regions of the panels).  Lost,
with a warning: "merge only" pixels and the efficiency, which the format cannot express.
"""

import warnings
from math import prod
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.atomic import atomic_path
from orienteer.detector.detector import Detector
from orienteer.detector.masks import PixelUse
from orienteer.detector.panel import Panel
from orienteer.errors import FileError

LARGEST_N_BAD_REGIONS = 50_000


def write_crystfel_geom(
    path: str | PathLike[str],
    detector: Detector,
    photon_energy_eV: float | None = None,
    data_location: str = "/entry_1/instrument_1/detector_1/data",
    adu_per_photon: float = 1.0,
) -> None:
    """Write a geometry file that CrystFEL and Orienteer read, for data whose first axis is the event."""
    if not detector.panels:
        raise FileError(
            path,
            f"detector '{detector.name}' is a list of pixels, but a .geom file can only hold panels.",
            "Write it as an Orienteer file (.h5).",
        )
    shape = _frame_shape(path, detector)
    lines = [
        f"; {detector.name}, written by Orienteer",
        f"; z along the beam, y up; a frame has the shape {shape}",
    ]
    if photon_energy_eV is not None:
        lines.append(f"photon_energy = {float(photon_energy_eV)!r} eV")
    clen_m = float(detector.panels[0].origin_m[2])
    lines += [
        f"clen = {clen_m!r} m",
        f"adu_per_photon = {adu_per_photon!r}",
        f"data = {data_location}",
        "dim0 = %",
        "",
    ]
    for panel in detector.panels:
        lines += [*_panel_lines(panel, shape, clen_m), ""]
    lines += _group_lines(detector)
    lines += _bad_region_lines(path, detector, shape)
    lost = [
        word
        for word, there in (
            ("'merge only' pixels", bool((detector.mask == PixelUse.MERGE_ONLY).any())),
            ("the efficiency", detector.efficiency is not None),
        )
        if there
    ]
    if lost:
        warnings.warn(f"a .geom file cannot hold {' and '.join(lost)}; they are not in {path}.", stacklevel=2)
    with atomic_path(path) as part:
        part.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _panel_lines(panel: Panel, shape: tuple[int, ...], clen_m: float) -> list[str]:
    res = float(1 / np.linalg.norm(panel.fast_m))
    first = np.unravel_index(panel.first_pixel, shape)
    slow_axis = _slow_axis(panel, shape)
    min_ss, min_fs = int(first[slow_axis]), int(first[-1])
    settings: dict[str, Any] = {}
    for axis in range(len(shape)):
        role = {slow_axis: "ss", len(shape) - 1: "fs"}.get(axis)
        settings[f"dim{axis + 1}"] = int(first[axis]) if role is None else role
    settings |= {
        "min_fs": min_fs,
        "max_fs": min_fs + panel.shape[1] - 1,
        "min_ss": min_ss,
        "max_ss": min_ss + panel.shape[0] - 1,
        "res": repr(res),
        "corner_x": repr(float(panel.origin_m[0] * res)),
        "corner_y": repr(float(panel.origin_m[1] * res)),
        "coffset": repr(float(panel.origin_m[2]) - clen_m),
        "fs": _vector(panel.fast_m * res),
        "ss": _vector(panel.slow_m * res),
    }
    return [f"{panel.name}/{key} = {value}" for key, value in settings.items()]


def _group_lines(detector: Detector) -> list[str]:
    members: dict[str, list[str]] = {}
    for panel in detector.panels:
        for group in panel.groups:
            members.setdefault(group, []).append(panel.name)
    lines = [f"group_{group} = {','.join(names)}" for group, names in members.items()]
    for collection, groups in detector.collections.items():
        lines += [f"rigid_group_{group} = {','.join(members[group])}" for group in groups if group in members]
        lines.append(f"rigid_group_collection_{collection} = {','.join(groups)}")
    return lines


def _bad_region_lines(path: str | PathLike[str], detector: Detector, shape: tuple[int, ...]) -> list[str]:
    lines: list[str] = []
    count = 0
    for panel in detector.panels:
        first = np.unravel_index(panel.first_pixel, shape)
        min_ss, min_fs = int(first[_slow_axis(panel, shape)]), int(first[-1])
        for top, bottom, left, right in rectangles(detector.mask[panel.frame_indices()] == PixelUse.NEVER):
            count += 1
            if count > LARGEST_N_BAD_REGIONS:
                raise FileError(
                    path,
                    f"the mask needs more than {LARGEST_N_BAD_REGIONS} bad regions.",
                    "Write the detector as an Orienteer file (.h5), which keeps the mask as an array.",
                )
            bounds = {"panel": panel.name, "min_fs": min_fs + left, "max_fs": min_fs + right}
            bounds |= {"min_ss": min_ss + top, "max_ss": min_ss + bottom}
            lines += [f"bad{count}/{key} = {value}" for key, value in bounds.items()]
    return lines


def rectangles(bad: NDArray[np.bool_]) -> list[tuple[int, int, int, int]]:
    """Rectangles (first row, last row, first column, last column) that cover exactly the true pixels.

    >>> rectangles(np.array([[0, 1, 1], [0, 1, 1], [1, 0, 0]], dtype=bool))
    [(0, 1, 1, 2), (2, 2, 0, 0)]
    """
    done: list[tuple[int, int, int, int]] = []
    growing: dict[tuple[int, int], int] = {}
    for row in range(bad.shape[0] + 1):
        runs: set[tuple[int, int]] = set()
        if row < bad.shape[0] and bad[row].any():
            steps = np.diff(np.concatenate([[0], bad[row].astype(np.int8), [0]]))
            starts, ends = np.flatnonzero(steps == 1), np.flatnonzero(steps == -1) - 1
            runs = set(zip(starts.tolist(), ends.tolist(), strict=True))
        for run in [run for run in growing if run not in runs]:
            done.append((growing.pop(run), row - 1, *run))
        for run in runs:
            growing.setdefault(run, row)
    return sorted(done)


def _frame_shape(path: str | PathLike[str], detector: Detector) -> tuple[int, ...]:
    """A shape of the same flat order with every panel a slab: the frame's own, or one with panels stacked."""
    panels, n_pixels = detector.panels, detector.n_pixels
    n_slow, n_fast = panels[0].shape
    candidates = [
        detector.frame_shape,
        (n_pixels // (n_slow * n_fast), n_slow, n_fast),
        (n_pixels // n_fast, n_fast),
    ]
    for shape in candidates:
        if len(shape) >= 2 and prod(shape) == n_pixels and all(_is_slab(panel, shape) for panel in panels):
            return shape
    raise FileError(
        path,
        f"the panels of '{detector.name}' are not stored as slabs, as a .geom file needs them.",
        "Write .h5 or .dat, which hold any detector.",
    )


def _is_slab(panel: Panel, shape: tuple[int, ...]) -> bool:
    first = np.unravel_index(panel.first_pixel, shape)
    strides = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    if panel.shape[1] > 1 and panel.fast_stride != 1:
        return False
    if first[-1] + panel.shape[1] > shape[-1]:
        return False
    return panel.shape[0] == 1 or any(
        strides[axis] == panel.slow_stride and first[axis] + panel.shape[0] <= shape[axis]
        for axis in range(len(shape) - 1)
    )


def _slow_axis(panel: Panel, shape: tuple[int, ...]) -> int:
    if panel.shape[0] == 1:
        return len(shape) - 2
    first = np.unravel_index(panel.first_pixel, shape)
    return next(
        axis
        for axis in reversed(range(len(shape) - 1))
        if prod(shape[axis + 1 :]) == panel.slow_stride and first[axis] + panel.shape[0] <= shape[axis]
    )


def _vector(vector: NDArray[np.float64]) -> str:
    return " ".join(f"{float(value):+.17g}{axis}" for value, axis in zip(vector, "xyz", strict=True))
