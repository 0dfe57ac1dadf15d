"""``orienteer hits``: find the shots of a file that met a particle, and write them to a new file."""

import shlex
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from orienteer.cli.console import messages, output, print_json, print_losses
from orienteer.cli.opening import open_patterns
from orienteer.cli.options import (
    AsJson,
    DistanceM,
    Geometry,
    Overrides,
    Overwrite,
    SettingsFile,
    WavelengthA,
    refuse_existing,
    with_flags_of,
)
from orienteer.cli.progress import track
from orienteer.cli.stopping import telling_what_is_written
from orienteer.compute.words import counted
from orienteer.errors import FileError
from orienteer.hits.settings import HitSettings


@with_flags_of("hits", HitSettings)
def hits(
    data: Annotated[Path, typer.Argument(help="Shots: photons, or raw read-outs of a detector.")],
    out: Annotated[
        Path,
        typer.Option("--out", metavar="FILE", help="Where to write the hits; the ending chooses the format."),
    ] = Path("hits.h5"),
    single: Annotated[
        bool, typer.Option("--single", metavar="", help="Write only hits of single particles.")
    ] = False,
    table: Annotated[
        Path | None,
        typer.Option("--table", metavar="FILE", help="Also write a table of all shots: .csv, .h5 or .npz."),
    ] = None,
    overwrite: Overwrite = False,
    settings: SettingsFile = None,
    set_: Overrides = [],  # noqa: B006 - typer makes a new list for each call
    geometry: Geometry = None,
    wavelength_A: WavelengthA = None,
    distance_m: DistanceM = None,
    as_json: AsJson = False,
    *,
    flags: list[str],
) -> None:
    """Find the shots that met a particle, its size and kind, and write them with their columns.

    Only the shots are needed: background, threshold and particle are learned from them.
    """
    from orienteer.run.settings import Settings
    from orienteer.settings.loading import load_settings

    asked = load_settings(Settings, settings, [*set_, *flags])
    for written in (out, table):
        if written is not None and written.exists() and data.exists() and data.samefile(written):
            raise FileError(written, "is also the input.", "Give another name for what is written.")
    if table is not None and table.absolute() == out.absolute():
        raise FileError(out, "cannot hold both hits and table.", "Give the table another name.")
    for written in (out, table):
        if written is not None:
            refuse_existing(written, overwrite)
    with telling_what_is_written(out, table):
        source = open_patterns(data, geometry, wavelength_A, distance_m)
        report = _find(source, asked, out, single, table, wavelength_A or 0.0)
    if as_json:
        print_json(report)
        return
    hits, shots = (counted(report[f"{what}s"], what) for what in ("hit", "shot"))
    found = f"{hits} in {shots} ({100 * report['hit_rate']:.3g} %)"
    kinds = ", ".join(f"{n:,} {kind}" for kind, n in report["kinds"].items() if n)
    output.print(f"{found}: {kinds}" if kinds else found, soft_wrap=True)
    if report["size_A"]:
        output.print(
            f"Particles of {report['size_A']:,.0f} A; {report['photons_per_hit']:,.4g} photons a hit."
        )
    if report["shots"] and not report["hits"]:
        messages.print(
            "[yellow]note[/] No shot stands out from the others. If nearly all of them are hits, "
            "give --no-find, or empty shots of the same run with --background.",
            soft_wrap=True,
        )
    if not report["kinds"]:
        messages.print(
            "[dim]Sizes and kinds need a detector and a wavelength: --geometry, --wavelength-A[/]",
            soft_wrap=True,
        )
    print_losses(report["lost"])
    look = f"orienteer inspect {shlex.quote(str(out))}"
    output.print(
        f"{report['written']:,} written to {out}.  Look at them with: {look}", markup=False, soft_wrap=True
    )


def _find(
    source: Any, settings: Any, out: Path, single: bool, table: Path | None, wavelength_A: float
) -> dict[str, Any]:
    """Search the source, write hits and table, and return a report."""
    from orienteer.calibration.calibration import Calibration
    from orienteer.errors import OrienteerError
    from orienteer.hits.kinds import HitKind
    from orienteer.hits.search import HitSearch
    from orienteer.hits.shot_table import check_table_path, write_shot_table
    from orienteer.source.opening import writer_for

    if table is not None:
        check_table_path(table)
    start = time.perf_counter()
    calibration = Calibration(settings.calibration, source.n_pixels, source.detector)
    search = HitSearch(source, settings.hits, calibration, wavelength_A)
    if single and search.analysis is None:
        raise OrienteerError(
            "single particles can be recognised only if detector and wavelength are known.",
            "Give --geometry and --wavelength-A, or leave out --single.",
        )
    rows: dict[str, list[Any]] = {}
    photons = 0
    writer = writer_for(out, like=source)
    with writer:
        for shots in track(
            search, "Looking for hits", len(source), size=lambda s: len(s.columns["event_id"])
        ):
            chosen = shots.hits[shots.hits.columns["kind"] == HitKind.SINGLE] if single else shots.hits
            writer.append(chosen)
            photons += int(shots.hits.columns["photons"].sum())
            for name, column in shots.columns.items():
                if table is not None or name in ("is_hit", "kind"):
                    rows.setdefault(name, []).append(column)
    columns = {name: np.concatenate(parts) for name, parts in rows.items()}
    if table is not None:
        write_shot_table(table, columns)
    is_hit = columns.get("is_hit", np.zeros(0, bool))
    n_hits = int(is_hit.sum())
    kinds = {}
    if search.analysis is not None:
        of_hits = columns["kind"][is_hit] if n_hits else np.zeros(0, np.uint8)
        kinds = {kind.name.lower(): int((of_hits == kind).sum()) for kind in HitKind}
    return {
        "file": str(out),
        "table": None if table is None else str(table),
        "shots": len(is_hit),
        "hits": n_hits,
        "hit_rate": n_hits / max(len(is_hit), 1),
        "kinds": kinds,
        "written": writer.n_written,
        "size_A": 0.0 if search.analysis is None else search.analysis.size_A,
        "photons_per_hit": photons / max(n_hits, 1),
        "background_photons": float(search.finder.background.sum()),
        "threshold": search.finder.threshold,
        "seconds": time.perf_counter() - start,
        "lost": writer.losses(source) if len(source) else [],
    }
