"""Open data and geometries for a command: what the user gives wins, and a note reports what the files say."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from orienteer.errors import FileError
from orienteer.source.base import Source

if TYPE_CHECKING:
    from orienteer.detector.geometry_file import GeometryFile


def open_patterns(
    file: Path,
    geometry: Path | None = None,
    wavelength_A: float | None = None,
    distance_m: float | None = None,
) -> Source:
    """The patterns of a file, with the geometry, wavelength and distance that the user gave."""
    from orienteer.source.geometry import with_distance
    from orienteer.source.opening import open as open_source

    given = open_given_geometry(geometry, wavelength_A, distance_m) if geometry else None
    source = open_source(file, geometry=given, wavelength_A=wavelength_A)
    return source if geometry else with_distance(source, distance_m)


def open_given_geometry(
    file: Path, wavelength_A: float | None = None, distance_m: float | None = None
) -> "GeometryFile":
    """A geometry file at the distance that the user gave."""
    from orienteer.detector.opening import open_geometry, recognise_detector
    from orienteer.source.geometry import at_distance

    opened = open_geometry(file, wavelength_A=wavelength_A, distance_m=distance_m)
    form = recognise_detector(file)
    if distance_m is None or form in ("CrystFEL", "SpiniFEL"):  # these take the distance themselves
        return opened
    if form.startswith("Dragonfly"):
        raise FileError(
            file,
            "is a Dragonfly detector, which holds directions only, so that no distance can be set.",
            "Leave out --distance-m, or give the geometry in another format.",
        )
    return replace(opened, detector=at_distance(opened.detector, distance_m))
