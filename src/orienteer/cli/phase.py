"""``orienteer phase``: from the intensity of a run to the density, and how far to trust it."""

import shlex
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from orienteer.cli.console import messages, output, print_result, print_table
from orienteer.cli.options import AsJson, Device, Overrides, SettingsFile, VoxelInvA, with_flags_of
from orienteer.cli.progress import show_steps
from orienteer.cli.stopping import telling_when_stopped
from orienteer.compute.progress import tell
from orienteer.compute.words import in_three_digits, time_in_words
from orienteer.errors import FileError
from orienteer.phase.settings import PhaseSettings
from orienteer.plot.saving import save_picture

if TYPE_CHECKING:
    from orienteer.phase.result import Phasing
    from orienteer.run.intensity import Intensity

PICTURE = "density.png"


@with_flags_of("phase", PhaseSettings)
def phase(
    intensity: Annotated[
        Path, typer.Argument(help="The folder of a reconstruction, or a volume with an intensity.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FOLDER",
            help="Where to write; by default into the run, or NAME_phased in this folder for a volume.",
            show_default=False,
        ),
    ] = None,
    settings: SettingsFile = None,
    set_: Overrides = [],  # noqa: B006 - typer makes a new list for each call
    model: Annotated[int, typer.Option(help="Which model, if there are several.", min=1)] = 1,
    voxel_inv_A: VoxelInvA = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Seed of every random draw; by default that of the run.", min=0, show_default=False
        ),
    ] = None,
    device: Device = "auto",
    restart: Annotated[
        bool, typer.Option("--restart", metavar="", help="Phase again and replace the density in the folder.")
    ] = False,
    no_picture: Annotated[bool, typer.Option("--no-picture", metavar="", help="Draw nothing.")] = False,
    as_json: AsJson = False,
    *,
    flags: list[str],
) -> None:
    """Find the density behind an intensity from many random starts, and say how far they agree."""
    from orienteer.cli.phase_folder import (
        already_there,
        folder_for,
        refuse_other_run,
        save_whole,
        to_oneself,
        what_is_kept,
    )
    from orienteer.run.intensity import open_intensity
    from orienteer.run.settings import Settings
    from orienteer.settings.loading import load_settings

    begun = time.monotonic()
    chosen = load_settings(Settings, settings, [*set_, *flags], ("phase",)).phase
    folder = out or folder_for(intensity, model)
    with telling_when_stopped(f"Stopped; {what_is_kept(folder)}.", "The same command starts over."):
        given = open_intensity(intensity, model, voxel_inv_A)
        refuse_other_run(folder, given)
        if "symmetry" not in chosen.model_fields_set and given.symmetry != chosen.symmetry:
            chosen = chosen.model_copy(update={"symmetry": given.symmetry})
        used_seed = given.seed if seed is None else seed
        found = None if restart else already_there(folder, given, chosen, used_seed)
        was_there = found is not None
        if found is None:
            with to_oneself(folder):
                if not restart:  # another process may have done it while we waited for the lock
                    found = already_there(folder, given, chosen, used_seed)
                if found is None:
                    found = _phase(given, chosen, used_seed, device)
                    save_whole(found, folder)
    drawn, problem = None, None
    if not no_picture:
        try:
            drawn = _draw(found, folder, str(intensity))
        except FileError as error:
            problem = error
    seconds = time.monotonic() - begun
    facts = {"path": str(folder), "files": _files(folder), "picture": drawn, "seconds": seconds}
    report = {**facts, **found.describe()}
    print_result(report, lambda: _print(found, folder, drawn, seconds, was_there), as_json, problem)


def _phase(given: "Intensity", chosen: PhaseSettings, seed: int, device: Any) -> "Phasing":
    from orienteer.phase.phasing import phase as find_density

    with show_steps("Phasing"):
        found = find_density(given.volume, chosen, seed=seed, device=device, progress=tell)
    remarks = (*given.remarks, *given.contradictions(chosen), *found.further_remarks)
    return replace(found, origin=given.origin, further_remarks=remarks)


def _draw(found: "Phasing", folder: Path, title: str) -> Path:
    from orienteer.plot.density import plot_density

    return save_picture(plot_density(found, title), folder / PICTURE)


def _files(folder: Path) -> list[str]:
    from orienteer.phase.files import DENSITY_H5, DENSITY_MRC, DESCRIPTION, SUPPORT

    return [str(folder / name) for name in (DENSITY_MRC, DENSITY_H5, SUPPORT, DESCRIPTION)]


def _print(
    found: "Phasing", folder: Path, drawn: Path | None, seconds: float, was_there: bool
) -> None:  # fmt: skip
    chosen = found.clusters.clusters[0]
    rows = [
        ("starts", f"{len(chosen)} of {found.clusters.n_starts} agree and are averaged"),
        ("phases", found.prtf.words()),
        ("R-factor", f"{found.r_factor.overall:.3f}"),
        ("support", f"{in_three_digits(found.support_volume_A3)} A^3"),
        (
            "unit",
            f"{found.scale.unit} (from {found.scale.source})" if found.scale.is_absolute else "arbitrary",
        ),
        ("not seen by the data", found.weak_modes.words()),
        ("hand", "not known: both hands have the same intensity"),
        ("time", time_in_words(seconds)),
    ]
    if found.background > 0:
        rows.insert(4, ("background", f"{found.background:.3g}, subtracted from the intensity"))
    print_table(rows)
    for remark in found.remarks:
        if remark in (found.weak_modes.words(), found.prtf.words()):  # printed above
            continue
        messages.print(f"[yellow]note[/] {escape(remark)}", soft_wrap=True)
    names = ", ".join(Path(file).name for file in _files(folder))
    if was_there:
        words = "It was phased already with these settings; --restart does it again."
        messages.print(f"[yellow]note[/] {words}", soft_wrap=True)
    done = "It is in" if was_there else "Written to"
    output.print(f"{done} {folder}: {names}", markup=False, soft_wrap=True)
    if drawn is not None:
        output.print(f"Open   {shlex.quote(str(drawn))}", style="bold", markup=False, soft_wrap=True)
