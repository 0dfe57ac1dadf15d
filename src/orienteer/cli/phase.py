"""``orienteer phase``: from the intensity of a run to the density, and how far to trust it."""

import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from orienteer.cli.console import Stopped, messages, output, print_json, print_table
from orienteer.cli.inspect import save_picture
from orienteer.cli.live_display import time_in_words
from orienteer.cli.options import AsJson, Device, Overrides, SettingsFile, with_flags_of
from orienteer.cli.progress import show_steps
from orienteer.compute.atomic import unwritable
from orienteer.compute.progress import tell
from orienteer.errors import FileError
from orienteer.phase.settings import PhaseSettings

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
            help="Where to write; otherwise into the run, or for a volume into NAME_phased in this folder.",
            show_default=False,
        ),
    ] = None,
    settings: SettingsFile = None,
    set_: Overrides = [],  # noqa: B006 - typer makes a new list for each call
    model: Annotated[int, typer.Option(help="Which model, where there are several.", min=1)] = 1,
    voxel_inv_A: Annotated[
        float | None,
        typer.Option(
            "--voxel-inv-A", help="Size of a voxel in 1/A, where the volume does not say.", min=1e-9
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Seed of every random draw; otherwise that of the run.", min=0, show_default=False),
    ] = None,
    device: Device = "auto",
    restart: Annotated[
        bool, typer.Option("--restart", help="Write over what was phased into the folder before.")
    ] = False,
    no_picture: Annotated[bool, typer.Option("--no-picture", help="Draw nothing.")] = False,
    as_json: AsJson = False,
    *,
    flags: list[str],
) -> None:
    """Find the density behind an intensity from many random starts, and tell how far they agree."""
    from orienteer.run.intensity import open_intensity
    from orienteer.run.settings import Settings
    from orienteer.run.signals import RunStopped, stopping_at_once
    from orienteer.settings.loading import load_settings

    begun = time.monotonic()
    chosen = load_settings(Settings, settings, [*set_, *flags]).phase
    folder = out or _folder_for(intensity, model)
    try:
        with stopping_at_once(f"Stopped; {_what_is_kept(folder)}.", "The same command begins anew."):
            given = open_intensity(intensity, model, voxel_inv_A)
            _refuse_other_run(folder, given)
            if "symmetry" not in chosen.model_fields_set and given.symmetry != chosen.symmetry:
                chosen = chosen.model_copy(update={"symmetry": given.symmetry})
            used_seed = given.seed if seed is None else seed
            found = None if restart else _already_there(folder, given, chosen, used_seed)
            if found is None:
                with _to_oneself(folder):
                    found = _phase(given, chosen, used_seed, device)
                    _save(found, folder)
    except RunStopped as stopped:
        messages.print(f"{escape(stopped.message)} {escape(stopped.hint)}", soft_wrap=True)
        raise Stopped(stopped.exit_status) from None
    drawn = None if no_picture else _draw(found, folder, str(intensity))
    _tell(found, folder, drawn, time.monotonic() - begun, as_json)


def _phase(given: "Intensity", chosen: PhaseSettings, seed: int, device: Any) -> "Phasing":
    from orienteer.phase.phasing import phase as find_density

    with show_steps("Phasing"):
        found = find_density(given.volume, chosen, seed=seed, device=device, progress=tell)
    remarks = (*given.remarks, *given.contradictions(chosen), *found.further_remarks)
    return replace(found, origin=given.origin, further_remarks=remarks)


def _save(found: "Phasing", folder: Path) -> None:
    """Write all files; who wants to stop meanwhile waits that second, and no half of a result is left."""
    from orienteer.run.signals import StopRequests

    with StopRequests() as stop:
        found.save(folder)
    if stop.is_requested:
        raise stop.exception(f"Stopped; the density is written to {folder}.", "The same command shows it.")


@contextmanager
def _to_oneself(folder: Path) -> Iterator[None]:
    """Inside the block no other process phases into the folder; one that stays empty is not left behind."""
    from orienteer.run.lock import PHASING, RunLock

    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from error
    try:
        with RunLock(folder, PHASING, "phasing into this folder"):
            yield
    finally:
        if is_new:
            with suppress(OSError):  # there is a density in it
                folder.rmdir()


def _what_is_kept(folder: Path) -> str:
    from orienteer.phase.result import DESCRIPTION

    is_there = (folder / DESCRIPTION).exists()
    return "the density that was there is left as it was" if is_there else "nothing was written"


def _refuse_other_run(folder: Path, given: "Intensity") -> None:
    """Refuse the folder of a run for the density of another intensity, which would pass for the run's own."""
    from orienteer.run.directory import RunDirectory

    directory = RunDirectory(folder)
    if directory.is_run and directory.describe()["run_id"] != given.origin.get("run_id"):
        raise FileError(folder, "is the folder of a run with another intensity.", "Give another --out.")


def _folder_for(intensity: Path, model: int) -> Path:
    """Where the density goes when nobody says."""
    if intensity.is_dir():
        return intensity if model == 1 else intensity / f"phased_model_{model}"
    return Path(f"{intensity.name.partition('.')[0]}_phased" + (f"_{model}" if model > 1 else ""))


def _already_there(folder: Path, given: "Intensity", chosen: PhaseSettings, seed: int) -> "Phasing | None":
    """What an earlier command has found in the same way; something else is not written over."""
    from orienteer.phase.result import DENSITY_H5, DENSITY_MRC, DESCRIPTION, Phasing
    from orienteer.run.directory import RunDirectory

    hint = "--restart writes over it; --out names another folder."
    if not (folder / DESCRIPTION).exists():
        names = () if RunDirectory(folder).is_run else (DENSITY_MRC, DENSITY_H5)
        for name in names:  # in a run they are what a phasing that was killed has left
            if (folder / name).exists():
                raise FileError(folder / name, "is there already, from something else.", hint)
        return None
    try:
        found = Phasing.open(folder)
    except FileError as error:
        error.hint = f"{error.hint} {hint}".strip()
        raise
    same = (
        found.origin.get("checksum") == given.origin["checksum"]
        and found.settings == chosen.model_dump(mode="json")
        and found.seed == seed
    )
    if not same:
        raise FileError(folder, "holds a density from another intensity, seed or settings.", hint)
    return found


def _draw(found: "Phasing", folder: Path, title: str) -> Path:
    from orienteer.plot.density import plot_density

    return save_picture(plot_density(found, title), folder / PICTURE)


def _tell(found: "Phasing", folder: Path, drawn: Path | None, seconds: float, as_json: bool) -> None:
    from orienteer.phase.result import DENSITY_H5, DENSITY_MRC, DESCRIPTION, SUPPORT

    files = [str(folder / name) for name in (DENSITY_MRC, DENSITY_H5, SUPPORT, DESCRIPTION)]
    if as_json:
        facts = {"path": str(folder), "files": files, "picture": drawn, "seconds": seconds}
        print_json({**facts, **found.describe()})
        return
    chosen = found.clusters.clusters[0]
    rows = [
        ("starts", f"{len(chosen)} of {found.clusters.n_starts} agree and are averaged"),
        ("phases", found.prtf.words()),
        ("R-factor", f"{found.r_factor.overall:.3f}"),
        ("support", f"{found.support_volume_A3:,.0f} A^3"),
        (
            "unit",
            f"{found.scale.unit} (from {found.scale.source})" if found.scale.is_absolute else "arbitrary",
        ),
        ("not seen by the data", found.weak_modes.words()),
        ("hand", "not known: both hands have the same intensity"),
        ("time", time_in_words(seconds)),
    ]
    if found.background > 0:
        rows.insert(4, ("background", f"{found.background:.3g}, taken off the intensity"))
    print_table(rows)
    for remark in found.remarks:
        if remark in (found.weak_modes.words(), found.prtf.words()):  # told above
            continue
        messages.print(f"[yellow]note[/] {escape(remark)}", soft_wrap=True)
    output.print(
        f"Written to {folder}: {', '.join(Path(f).name for f in files)}", markup=False, soft_wrap=True
    )
    if drawn is not None:
        output.print(f"Open   {shlex.quote(str(drawn))}", style="bold", markup=False, soft_wrap=True)
