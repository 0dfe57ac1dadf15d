"""``orienteer convert``: patterns, geometries and volumes from one format to another."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from orienteer.cli.console import messages, output, print_json, print_losses
from orienteer.cli.opening import open_given_geometry, open_patterns
from orienteer.cli.options import (
    AsJson,
    DistanceM,
    Geometry,
    Overwrite,
    VoxelA,
    VoxelInvA,
    WavelengthA,
    refuse_existing,
)
from orienteer.cli.progress import track
from orienteer.cli.recognition import kind_of
from orienteer.cli.stopping import telling_what_is_written
from orienteer.errors import FileError, OrienteerError, SettingsError
from orienteer.source.base import Source

GEOMETRY_ENDINGS = (".geom", ".dat")


def convert(
    source: Annotated[
        Path, typer.Argument(metavar="IN", help="Patterns, geometry or volume; recognised by content.")
    ],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The new file; its ending names the format.")],
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="FORMAT", help="Format of OUT, if its ending does not name one."),
    ] = None,
    geometry: Geometry = None,
    wavelength_A: WavelengthA = None,
    distance_m: DistanceM = None,
    voxel_A: VoxelA = None,
    voxel_inv_A: VoxelInvA = None,
    renumber: Annotated[
        bool,
        typer.Option(
            "--renumber", metavar="", help="Number the frames from 0 instead of keeping their event ids."
        ),
    ] = False,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Convert patterns, geometries (.geom, Dragonfly) or volumes (.mrc, .h5) to another format.

    If IN holds patterns and OUT ends in .geom or .dat, only the detector is written.
    """
    if source.exists() and target.exists() and source.samefile(target):
        raise FileError(target, "is also the input.", "Give another name for the output.")
    with telling_what_is_written(target):
        kind = kind_of(source)
        to_detector = kind == "detector" or (kind == "patterns" and target.suffix in GEOMETRY_ENDINGS)
        if to is not None:
            _check_format(to, kind, to_detector)
        _check_voxels(voxel_A, voxel_inv_A, kind)
        refuse_existing(target, overwrite)
        if kind == "volume":
            report = _convert_volume(source, target, voxel_A, voxel_inv_A)
        elif to_detector:
            report = _convert_detector(
                source, target, to, geometry, wavelength_A, distance_m, kind == "patterns"
            )
        elif kind == "patterns":
            patterns = open_patterns(source, geometry, wavelength_A, distance_m)
            report = _convert_patterns(patterns, target, to, renumber)
        else:
            raise FileError(
                source, "is an atomic structure, which convert does not write.", "Try: orienteer simulate"
            )
    if as_json:
        print_json(report)
        return
    output.print(f"{report['from']} -> {report['to']}: {target}", markup=False, soft_wrap=True)
    print_losses(report.get("lost", ()))
    if "detector" in report.get("lost", ()) and geometry is None:  # else it is in a file already
        keep = f"orienteer convert {shlex.quote(str(source))} {shlex.quote(str(target.with_suffix('.geom')))}"
        messages.print(f"To keep the detector, write it to a separate file: {escape(keep)}", soft_wrap=True)


def _check_format(to: str, kind: str, to_detector: bool) -> None:
    """Refuse a --to that names no known format, as an error of the command line and not of the file."""
    from orienteer.detector.writing import ENDINGS
    from orienteer.source.opening import format_names

    if kind == "volume":
        raise SettingsError("--to is not for volumes.", "The ending of OUT names the format: .mrc or .h5")
    known = list(ENDINGS) if to_detector else format_names()
    if to.lower() not in {name.lower() for name in known}:
        raise SettingsError(f"--to {to}: no such format.", f"Known formats: {', '.join(known)}.")


def _convert_patterns(patterns: Source, target: Path, to: str | None, renumber: bool) -> dict[str, Any]:
    from orienteer.source.opening import writer_for
    from orienteer.source.patterns import Patterns

    writer = writer_for(target, to, like=patterns)
    with writer:
        for batch in track(patterns.batches(), "Converting", len(patterns), size=len):
            writer.append(Patterns(batch.frames, columns=batch.columns) if renumber else batch)
    return {
        "from": patterns.format,
        "to": writer.format,
        "file": str(target),
        "frames": len(patterns),
        "lost": writer.losses(patterns),
    }


def _check_voxels(voxel_A: float | None, voxel_inv_A: float | None, kind: str) -> None:
    """Refuse voxel sizes for anything but a volume, and two sizes at once."""
    if voxel_A is None and voxel_inv_A is None:
        return
    if kind != "volume":
        raise SettingsError(
            "--voxel-A and --voxel-inv-A are for volumes, but IN is not a volume.", "Leave them out."
        )
    if voxel_A is not None and voxel_inv_A is not None:
        raise SettingsError(
            "--voxel-A and --voxel-inv-A were both given.",
            "A density has voxels in A, an intensity in 1/A: give one of them.",
        )


def _convert_volume(
    source: Path, target: Path, voxel_A: float | None, voxel_inv_A: float | None
) -> dict[str, Any]:
    from orienteer.volume.opening import open_volumes, recognise_volume, write_volume

    if voxel_A is not None:
        volumes = open_volumes(source, voxel_A, "real")
        if any(volume.space != "real" for volume in volumes):
            raise SettingsError(f"{source} can only hold intensities.", "Give --voxel-inv-A instead.")
    elif voxel_inv_A is not None:
        volumes = open_volumes(source, voxel_inv_A, "reciprocal")
    else:
        volumes = open_volumes(source)
    write_volume(target, volumes)
    report = {"from": recognise_volume(source), "to": recognise_volume(target), "file": str(target)}
    n_lost = sum(volume.n_missing for volume in volumes) if "MRC" in report["to"] else 0
    return report | {"lost": [f"{n_lost:,} voxels that were never measured, now 0"] if n_lost else []}


def _convert_detector(
    source: Path,
    target: Path,
    to: str | None,
    geometry: Path | None,
    wavelength_A: float | None,
    distance_m: float | None,
    from_patterns: bool,
) -> dict[str, Any]:
    from orienteer.detector.writing import write_detector_file

    if from_patterns:
        patterns = open_patterns(source, geometry, wavelength_A, distance_m)
        detector, polarisation = patterns.detector, patterns.polarisation
        if detector is None:
            raise OrienteerError(f"{source}: carries no detector to write.", "Give --geometry FILE.")
        wavelength_A = wavelength_A or _first_wavelength(patterns)
    else:
        opened = open_given_geometry(source, wavelength_A, distance_m)
        detector, polarisation = opened.detector, opened.polarisation
        wavelength_A = wavelength_A or opened.wavelength_A
    name = write_detector_file(
        target, detector, to, wavelength_A=wavelength_A, polarisation=polarisation or "x"
    )
    return {"from": "detector", "to": name, "file": str(target), "pixels": detector.n_pixels}


def _first_wavelength(patterns: Source) -> float | None:
    if "wavelength_A" not in patterns.column_names or not len(patterns):
        return None
    return float(patterns.read_columns(["wavelength_A"], slice(0, 1))["wavelength_A"][0])
