"""Data as a command opens them: with the geometry that the user gave, where the file carries none."""

from pathlib import Path

from orienteer.source.base import Source


def open_patterns(
    file: Path,
    geometry: Path | None = None,
    wavelength_A: float | None = None,
    distance_m: float | None = None,
) -> Source:
    """The patterns of a file, with a geometry file and a wavelength when they are given."""
    from orienteer.detector.opening import open_geometry
    from orienteer.source.opening import open as open_source

    given = open_geometry(geometry, wavelength_A=wavelength_A, distance_m=distance_m) if geometry else None
    return open_source(file, geometry=given, wavelength_A=wavelength_A)
