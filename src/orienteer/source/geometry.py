"""Join data with a geometry file: its detector, the masks it refers to inside the data, and its defaults."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import h5py
import numpy as np
from numpy.typing import NDArray

from orienteer.compute.hdf5_file import open_hdf5_for_reading
from orienteer.compute.hdf5_reading import get_dataset, read_array
from orienteer.compute.reading import is_hdf5, read_head, reading
from orienteer.detector.crystfel_masks import MaskReference, apply_mask, mask_levels
from orienteer.detector.geometry_file import GeometryFile
from orienteer.errors import OrienteerError
from orienteer.settings.units import check_unit
from orienteer.source.base import Source
from orienteer.source.finite_source import FiniteSource, FrameMask
from orienteer.source.wavelength import WAVELENGTH, known_wavelengths

if TYPE_CHECKING:
    from orienteer.detector.detector import Detector


def with_geometry(source: Source, geometry: GeometryFile) -> Source:
    """The same data with the detector and the other facts of a geometry file.

    The file's wavelength is used for events that carry none, and its polarisation if the data carry none.
    Its ``adu_per_photon`` goes into the metadata.
    """
    detector, frame_masks = _with_masks_in_data(source, geometry)
    if not isinstance(source, FiniteSource):
        return source.with_detector(detector)
    facts = {"adu_per_photon": dict(geometry.adu_per_photon)} if geometry.adu_per_photon else {}
    return source.with_given(
        replace(
            source.given,
            detector=detector,
            wavelength_A=source.given.wavelength_A or geometry.wavelength_A,
            polarisation=source.given.polarisation or geometry.polarisation,
            metadata={**facts, **source.given.metadata},
            frame_masks=(*source.given.frame_masks, *frame_masks),
        )
    )


def with_wavelength(source: Source, wavelength_A: float | None) -> Source:
    """The same data with this wavelength for all events; warns if the data hold another one."""
    if wavelength_A is None:
        return source
    check_unit(WAVELENGTH, wavelength_A)
    if not isinstance(source, FiniteSource):
        raise OrienteerError(
            f"these data ({source.format}) have a wavelength of their own, which cannot be replaced.",
            "Leave the wavelength out.",
        )
    if WAVELENGTH in source.column_names:
        known = known_wavelengths(source.read_columns([WAVELENGTH])[WAVELENGTH])
        if len(known) and not np.allclose(known, wavelength_A, rtol=1e-6, atol=0):
            said = (
                f"{known.min():.6g} A" if np.ptp(known) == 0 else f"{known.min():.6g} to {known.max():.6g} A"
            )
            warnings.warn(
                f"{source.name}: the data say a wavelength of {said}; {wavelength_A:.6g} A is used instead.",
                stacklevel=3,
            )
    return source.with_given(replace(source.given, wavelength_A=wavelength_A, wavelength_of_all=True))


def with_distance(source: Source, distance_m: float | None) -> Source:
    """The same data with their own detector moved along the beam; warns where it was."""
    if distance_m is None:
        return source
    if source.detector is None:
        raise OrienteerError(
            "a distance alone does not say where the pixels of these data are.",
            "Give the detector too: --geometry FILE.",
        )
    return source.with_detector(at_distance(source.detector, distance_m))


def at_distance(detector: Detector, distance_m: float) -> Detector:
    """The detector moved along the beam to this distance; warns where it was."""
    check_unit("distance_m", distance_m)
    if np.isclose(detector.distance_m, distance_m, rtol=1e-9, atol=0):
        return detector
    warnings.warn(
        f"{detector.name or 'the detector'}: by its file it stands at {detector.distance_m:.6g} m; "
        f"{distance_m:.6g} m is used instead.",
        stacklevel=3,
    )
    return detector.moved((0.0, 0.0, distance_m - detector.distance_m))


def _with_masks_in_data(source: Source, geometry: GeometryFile) -> tuple[Detector, list[FrameMask]]:
    """The detector with the masks of the data file for all frames applied, and the masks for each frame."""
    detector = geometry.detector
    each_frame: list[tuple[MaskReference, h5py.Dataset]] = []
    for reference in geometry.masks_in_data:
        mask = _find(source.path, reference.location)
        if mask is None:
            where = source.path or "these data"
            warnings.warn(
                f"{where}: the geometry's mask {reference.location} is not in it; it is ignored.",
                stacklevel=3,
            )
        elif mask.ndim and (len(mask), prod(mask.shape[1:])) == (source.n_frames, detector.n_pixels):
            each_frame.append((reference, mask))
        else:
            with reading(mask.file.filename):
                detector = apply_mask(detector, reference, read_array(mask))

    def levels(reference: MaskReference, mask: h5py.Dataset, rows: slice) -> NDArray[np.uint8]:
        return mask_levels(detector, reference, read_array(mask, rows))

    return detector, [partial(levels, reference, mask) for reference, mask in each_frame]


def _find(path: Path | None, location: str) -> h5py.Dataset | None:
    """The dataset of a mask in the data file, which stays open; None if there is none."""
    if path is None or not is_hdf5(read_head(path)):
        return None
    with reading(path):
        file = open_hdf5_for_reading(path)
        name = location.lstrip("/")
        if name not in file:
            return None
        return get_dataset(file, name, "biu", foreign=True)
