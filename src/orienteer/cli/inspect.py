"""``orienteer inspect``: what a file holds, in numbers and as a picture."""

import math
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from orienteer.cli.console import output, print_result, print_table
from orienteer.cli.opening import open_given_geometry, open_patterns
from orienteer.cli.options import AsJson, DistanceM, Geometry, WavelengthA
from orienteer.cli.progress import track
from orienteer.cli.recognition import kind_of
from orienteer.errors import FileError
from orienteer.plot.saving import refuse_no_picture, save_picture
from orienteer.run.directory import RunDirectory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BARS = "▁▂▃▄▅▆▇█"
# What is printed about a file, and the function that draws its picture (None if there is none).
Look = tuple[dict[str, Any], "Callable[[], Figure] | None"]


def inspect(
    file: Annotated[
        Path, typer.Argument(help="Patterns, volume, geometry or structure, in any known format.")
    ],
    geometry: Geometry = None,
    wavelength_A: WavelengthA = None,
    distance_m: DistanceM = None,
    frames: Annotated[
        int, typer.Option(help="Look at this many frames at most, spread evenly.", min=1)
    ] = 10_000,
    picture: Annotated[
        Path | None,
        typer.Option("--picture", metavar="PNG", help="Where to draw; by default FILE.png in this folder."),
    ] = None,
    no_picture: Annotated[bool, typer.Option("--no-picture", metavar="", help="Draw nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what a file holds, and draw it: frames, photons, mask, wavelength, resolution, what is missing."""
    if RunDirectory(file).is_run:
        look = f"Draw it with: orienteer plot {shlex.quote(str(file))}"
        raise FileError(file, "is the folder of a reconstruction, not a file.", look)
    if picture is not None and not no_picture:
        refuse_no_picture(picture)
    kind = kind_of(file)
    if kind == "patterns":
        report, draw = look_at_patterns(file, geometry, wavelength_A, distance_m, frames)
    elif kind == "volume":
        report, draw = look_at_volume(file)
    elif kind == "detector":
        report, draw = look_at_detector(file, wavelength_A, distance_m)
    else:
        report, draw = look_at_structure(file)
    problem = None
    if draw is not None and not no_picture:
        try:
            report["picture"] = str(save_picture(draw(), picture or Path(f"{file.name}.png")))
        except FileError as error:
            problem = error
    print_result(report, lambda: print_report(report), as_json, problem)


def look_at_patterns(
    file: Path, geometry: Path | None, wavelength_A: float | None, distance_m: float | None, frames: int
) -> Look:
    """A report on the frames of a data set, and their picture."""
    from orienteer.plot.patterns import plot_summary
    from orienteer.source.summary import blocks_to_look_at, summarise

    source = open_patterns(file, geometry, wavelength_A, distance_m)
    blocks = blocks_to_look_at(len(source), frames)
    n_frames = sum(block.stop - block.start for block in blocks)
    batches = track((source.read(block) for block in blocks), "Reading", n_frames, size=len)
    summary = summarise(source, batches, wavelength_A)
    return summary.as_report(), lambda: plot_summary(summary)


def look_at_volume(file: Path) -> Look:
    """A report on a volume file, and a picture of its first model."""
    from orienteer.plot.volume import plot_volume
    from orienteer.volume.opening import open_volumes, recognise_volume

    volumes = open_volumes(file)
    first = volumes[0]
    values = first.values[np.isfinite(first.values)]
    unit = "A" if first.space == "real" else "1/A"
    report = {
        "path": str(file),
        "format": recognise_volume(file),
        "models": len(volumes),
        "shape": list(first.shape),
        "space": first.space,
        "voxel_size": [f"{size:.6g} {unit}" for size in first.voxel_size],
        "values": {"min": values.min(), "mean": values.mean(), "max": values.max()} if len(values) else {},
        "voxels_without_value": int(first.values.size - len(values)),
    }
    return report, lambda: plot_volume(first, file.name)


def look_at_detector(file: Path, wavelength_A: float | None, distance_m: float | None) -> Look:
    """A report on the detector of a geometry file, and its picture."""
    from orienteer.detector.masks import PixelUse
    from orienteer.plot.detector import plot_detector

    detector = open_given_geometry(file, wavelength_A, distance_m).detector
    report = {
        "path": str(file),
        "format": "detector geometry",
        "panels": len(detector.panels),
        "frame_shape": list(detector.frame_shape),
        "pixels": detector.n_pixels,
        "distance_m": detector.distance_m,
        "mask": {use.name.lower(): int((detector.mask == use).sum()) for use in PixelUse},
        "resolution_edge_A": detector.edge_resolution_A(wavelength_A) if wavelength_A else None,
        "resolution_corner_A": detector.corner_resolution_A(wavelength_A) if wavelength_A else None,
    }
    return report, lambda: plot_detector(detector, wavelength_A)


def look_at_structure(file: Path) -> Look:
    """A report on the atoms of a PDB or mmCIF file; there is no picture."""
    from orienteer.particle.opening import open_structure

    structure = open_structure(file)
    report = {
        "path": str(file),
        "format": "atomic structure",
        "atoms": len(structure),
        "electrons": structure.n_electrons,
        "diameter_A": 2 * structure.radius_A,
        "remarks": list(structure.remarks),
    }
    return report, None


def print_report(report: Mapping[str, Any]) -> None:
    """Print a report as a table for people."""
    rows = [(key.replace("_", " "), in_words(value)) for key, value in report.items() if key != "missing"]
    print_table([(name, words) for name, words in rows if words])
    for name, meaning in report.get("missing", {}).items():
        output.print(f"[yellow]missing[/] {name}: {meaning}")


def in_words(value: Any) -> str:
    """A value of a report as a line of text."""
    if isinstance(value, Mapping) and set(value) == {"edges", "frames"}:
        return histogram_in_words(value["edges"], value["frames"])
    if isinstance(value, Mapping):
        return ", ".join(f"{name.replace('_', ' ')} {in_words(part)}" for name, part in value.items())
    if isinstance(value, list):
        return (
            " x ".join(str(part) for part in value)
            if value and isinstance(value[0], int)
            else ", ".join(map(str, value))
        )
    if isinstance(value, float) and not math.isfinite(value):
        return ""  # an unknown value; null in JSON
    if isinstance(value, bool) or value is None:
        return "" if value is None else str(value).lower()
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    return f"{value:,.5g}" if isinstance(value, (float, np.floating)) else str(value)


def histogram_in_words(edges: list[float], frames: list[int]) -> str:
    """A histogram as bars of text.

    >>> histogram_in_words([0, 1, 2], [0, 8])
    '▁█ from 0 to 2'
    """
    most = max(frames, default=0)
    bars = "".join(BARS[round(n / most * (len(BARS) - 1))] if most else BARS[0] for n in frames)
    return f"{bars} from {edges[0]:,.4g} to {edges[-1]:,.4g}"
