"""``orienteer compare``: how alike two volumes are, and to which resolution."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from orienteer.cli.console import messages, output, print_result, print_table
from orienteer.cli.options import (
    AsJson,
    Device,
    Overrides,
    Overwrite,
    SettingsFile,
    refuse_existing,
    refuse_missing_folder,
)
from orienteer.cli.progress import show_steps
from orienteer.cli.recognition import kind_of
from orienteer.compute.arrays import choose_device, to_device, to_numpy
from orienteer.compute.nearest import meant_instead, nearest
from orienteer.errors import FileError, OrienteerError, SettingsError
from orienteer.phase.files import DENSITY_H5, DENSITY_MRC
from orienteer.plot.saving import refuse_no_picture, save_picture
from orienteer.run.directory import RunDirectory
from orienteer.run.files import INTENSITY_H5, INTENSITY_MRC

if TYPE_CHECKING:
    from orienteer.compare.comparison import Comparison
    from orienteer.particle.base import Particle
    from orienteer.particle.settings import ParticleSettings
    from orienteer.particle.structure import Structure
    from orienteer.volume.volume import Volume

# If a run directory is given, the first of these files that it holds is compared.
RESULTS = (DENSITY_H5, DENSITY_MRC, INTENSITY_H5, INTENSITY_MRC)
_AUTO = "auto"
_WHAT = "Density or intensity (MRC, HDF5), structure (PDB, mmCIF), folder of a run, or a built-in body."


def compare(
    first: Annotated[Path, typer.Argument(help=f"The reference. {_WHAT}", show_default=False)],
    second: Annotated[
        Path, typer.Argument(help="What is aligned to it; same kinds of file.", show_default=False)
    ],
    criterion: Annotated[
        str, typer.Option("--criterion", help="Resolution criterion: 0.5, 0.143, half-bit or a number.")
    ] = "0.5",
    mask: Annotated[
        str | None,
        typer.Option(
            "--mask", metavar="auto|FILE", help="Mask the densities, and correct the FSC for the mask."
        ),
    ] = None,
    symmetry: Annotated[
        str, typer.Option("--symmetry", metavar="GROUP", help="Symmetry imposed on both; for half-bit only.")
    ] = "C1",
    seed: Annotated[int, typer.Option("--seed", help="Seed of the correction for the mask.", min=0)] = 0,
    out: Annotated[Path | None, typer.Option("--out", metavar="PNG", help="Draw a picture here.")] = None,
    aligned: Annotated[
        Path | None,
        typer.Option("--aligned", metavar="FILE", help="Write the aligned second volume here (.mrc or .h5)."),
    ] = None,
    overwrite: Overwrite = False,
    settings: SettingsFile = None,
    set_: Overrides = [],  # noqa: B006 - typer makes a new list for each call
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Align two volumes and say how well they agree: rotation, hand, shift, resolution."""
    from orienteer.compare.comparison import compare as compare_volumes
    from orienteer.orientation.point_group import PointGroup
    from orienteer.run.settings import Settings
    from orienteer.settings.loading import load_settings

    _check_names(out, aligned, overwrite)
    where = choose_device(device)
    _check(criterion)
    group = PointGroup(symmetry)
    particle = load_settings(Settings, settings, set_, ("particle",)).particle
    pair = [_on_device(_open(path, particle), where) for path in (first, second)]
    with show_steps("Comparing"):
        found = compare_volumes(
            *pair, criterion=criterion, mask=_open_mask(mask), symmetry_order=group.order, seed=seed
        )
    remarks = [*_told(pair), *found.remarks]
    report: dict[str, Any] = {"first": str(first), "second": str(second), **found.as_report()}
    report |= {"remarks": remarks, "device": where}
    problem = None
    try:
        if aligned is not None:
            _write(aligned, found)
            report["aligned"] = str(aligned)
        if out is not None:
            from orienteer.plot.fsc import plot_comparison

            report["picture"] = str(save_picture(plot_comparison(found, first.name, second.name), out))
    except FileError as error:
        problem = error
    print_result(report, lambda: _print(report, found), as_json, problem)


def _open(path: Path, settings: "ParticleSettings") -> "Volume | Particle":
    """What is to be compared: a file, a run, or a built-in body if nothing there has its name."""
    from orienteer.particle.named_bodies import BODY_NAMES
    from orienteer.particle.settings import body_from_settings

    name = str(path)
    if path.exists() or path.suffix:
        return open_comparable(path)
    if name not in BODY_NAMES:
        near = nearest(name, BODY_NAMES)
        meant = (
            f"Did you mean the built-in body '{near}'?"
            if near
            else f"Give a file, the folder of a run, or a built-in body: {', '.join(BODY_NAMES)}."
        )
        raise FileError(path, "does not exist.", meant_instead(path, meant))
    if "diameter_A" not in settings.model_fields_set:
        raise SettingsError(
            f"'{name}' is a built-in body, whose diameter is not given.",
            "Give it as it was simulated: --settings FILE, or --set particle.diameter_A=240.",
        )
    return body_from_settings(name, settings)


def open_comparable(path: Path) -> "Volume | Structure":
    """The volume or structure in a file; for a run, its density, or its intensity if it has no density."""
    from orienteer.particle.opening import open_structure
    from orienteer.volume.opening import open_volume

    if path.is_dir():
        run = path
        names = [name for name in RESULTS if (run / name).is_file()]
        if not names:
            kind = (
                "is a run without a result yet" if RunDirectory(run).is_run else "is a folder without a run"
            )
            raise FileError(run, f"{kind}: it holds no density and no intensity.", "Give a volume or a run.")
        return open_volume(run / names[0])
    kind = kind_of(path)
    if kind == "structure":
        return open_structure(path)
    if kind != "volume":
        look = f"Look at it with: orienteer inspect {shlex.quote(str(path))}"
        raise FileError(
            path, f"holds {'a detector' if kind == 'detector' else kind}, not a volume or a structure.", look
        )
    return open_volume(path)


def _check_names(out: Path | None, aligned: Path | None, overwrite: bool) -> None:
    """Refuse output names that could not be written at the end."""
    if out is not None:
        refuse_no_picture(out)
    if aligned is not None:
        refuse_existing(aligned, overwrite)
        name = aligned.name.lower().removesuffix(".gz")
        if not name.endswith((".mrc", ".map", ".ccp4", ".h5", ".hdf5")):
            raise FileError(aligned, "does not end like a volume file.", "Use .mrc, .map, .ccp4 or .h5.")
    for path in (out, aligned):
        if path is not None:
            refuse_missing_folder(path)


def _check(criterion: str) -> None:
    """Refuse a wrong criterion before anything is computed, as an error of the command line."""
    from orienteer.compare.criteria import check_criterion

    try:
        check_criterion(criterion)
    except OrienteerError as error:
        raise SettingsError(error.message, error.hint) from error


def _open_mask(mask: str | None) -> "Volume | bool":
    from orienteer.volume.opening import open_volume

    if mask is None:
        return False
    return True if mask == _AUTO else open_volume(Path(mask))


def _on_device(given: "Volume | Particle", device: Any) -> "Volume | Particle":
    from orienteer.volume.volume import Volume

    return replace(given, values=to_device(given.values, device)) if isinstance(given, Volume) else given


def _told(pair: "list[Volume | Particle]") -> list[str]:
    """Remarks from opening the structures."""
    return [remark for given in pair for remark in getattr(given, "remarks", ())]


def _write(path: Path, found: "Comparison") -> None:
    from orienteer.volume.opening import write_volume

    write_volume(path, replace(found.aligned, values=to_numpy(found.aligned.values)))


def _print(report: dict[str, Any], found: "Comparison") -> None:
    rows = [
        ("compared", found.kind),
        ("correlation", f"{found.correlation:.4f}"),
        ("resolution", found.resolution.words),
        ("rotation", ", ".join(f"{x:.5f}" for x in found.rotation) + " (quaternion, scalar first)"),
    ]
    if found.hand is not None and found.shift_A is not None:
        hand = "the same" if found.hand == 1 else "mirrored"
        rows.append(("hand", f"{hand}; the other hand correlates by {found.other_hand_correlation:.4f}"))
        rows.append(("shift", ", ".join(f"{x:.2f}" for x in found.shift_A) + " A"))
    others = [(name, at.resolution_A) for name, at in found.resolutions.items() if name != found.criterion]
    rows.append(
        ("others", ", ".join(f"{name}: {'none' if r is None else f'{r:.4g} A'}" for name, r in others))
    )
    print_table(rows)
    for remark in report["remarks"]:
        messages.print(f"[yellow]note[/] {escape(remark)}", soft_wrap=True)
    for name in ("picture", "aligned"):
        if name in report:
            output.print(f"Open   {report[name]}", style="bold", markup=False, soft_wrap=True)
