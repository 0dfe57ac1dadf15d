"""``orienteer rotations``: a grid of orientations, its size and spacing, and the grid a resolution needs."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from orienteer.cli.console import output, print_json, print_table
from orienteer.cli.options import AsJson, Overwrite, refuse_existing
from orienteer.cli.progress import track
from orienteer.errors import OrienteerError, SettingsError

GridKind = Literal["600-cell", "hopf", "super-fibonacci"]


def rotations(
    level: Annotated[
        int | None,
        typer.Option(
            "--level", "-n", help="Fineness: 600-cell divisions, Hopf level or number of poses.", min=0
        ),
    ] = None,
    resolution_A: Annotated[
        float | None,
        typer.Option(
            "--resolution-A", help="Choose the level for this full-period resolution in angstrom.", min=0.01
        ),
    ] = None,
    diameter_A: Annotated[
        float | None,
        typer.Option("--diameter-A", help="Largest extent of the particle in angstrom.", min=0.01),
    ] = None,
    kind: Annotated[GridKind, typer.Option(help="How the orientations are laid out.")] = "600-cell",
    symmetry: Annotated[
        str, typer.Option(metavar="GROUP", help="Symmetry of the particle: C1, Cn, Dn, T, O or I.")
    ] = "C1",
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write the grid: .h5, or text that Dragonfly reads."),
    ] = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Make a grid of orientations, or find the one that a resolution and a particle size need."""
    from orienteer.orientation.files import write_grid
    from orienteer.orientation.grids import grid_for_resolution, make_grid
    from orienteer.orientation.point_group import PointGroup

    try:
        PointGroup(symmetry)
    except OrienteerError as error:
        raise SettingsError(f"--symmetry {symmetry}: {error.message}", error.hint) from error
    if out is not None:
        refuse_existing(out, overwrite)
    if level is not None and resolution_A is None and diameter_A is None:
        grid = make_grid(kind, level, symmetry)
    elif level is None and resolution_A is not None and diameter_A is not None:
        grid = grid_for_resolution(resolution_A, diameter_A, kind, symmetry)
    else:
        raise SettingsError(
            "rotations needs either --level, or --resolution-A together with --diameter-A.",
            "For example: orienteer rotations --resolution-A 12 --diameter-A 215",
        )
    report: dict[str, Any] = {
        "kind": grid.kind,
        "level": grid.level,
        "symmetry": str(grid.point_group),
        "rotations": len(grid),
    }
    measures: dict[str, Callable[[], float]] = {
        "closest_pair_deg": lambda: grid.closest_pair_deg,
        "covering_radius_deg": lambda: grid.covering_radius_deg,
        "largest_over_smallest_weight": lambda: float(grid.weights.max() / grid.weights.min()),
    }
    for name, measure in track(measures.items(), "Measuring the grid", len(measures)):
        report[name] = round(measure(), 4)
    if out is not None:
        write_grid(out, grid)
        report["file"] = str(out)
    if as_json:
        print_json(report)
        return
    print_table(
        [
            (name.replace("_", " "), f"{value:,}" if isinstance(value, int) else str(value))
            for name, value in report.items()
        ]
    )
    if out is None:
        output.print("[dim]Add --out FILE to keep the grid.[/]")
