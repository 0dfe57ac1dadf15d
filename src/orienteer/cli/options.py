"""Options that several commands share, and flags made from a section of settings."""

import functools
import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from orienteer.compute.arrays import DeviceName
from orienteer.errors import FileError
from orienteer.settings.describing import SettingRow, describe_section
from orienteer.settings.loading import Override
from orienteer.settings.section import Section
from orienteer.settings.units import check_unit

_NOT = "no_"


def _in_its_unit(parameter: typer.CallbackParam, value: float | None) -> float | None:
    """Check that a number from the command line is plausible in the unit that its flag ends with."""
    return None if value is None else check_unit(str(parameter.name), value, parameter.opts[0])


AsJson = Annotated[bool, typer.Option("--json", metavar="", help="Print the result as JSON.")]
Device = Annotated[
    DeviceName, typer.Option("--device", help="Where to compute; auto takes the GPU when there is one.")
]
Geometry = Annotated[
    Path | None,
    typer.Option(
        "--geometry",
        metavar="FILE",
        help="Detector: CrystFEL .geom, a Dragonfly detector or an Orienteer file.",
    ),
]
WavelengthA = Annotated[
    float | None,
    typer.Option(
        "--wavelength-A",
        help="Wavelength in angstrom; by default that of the data.",
        min=0.001,
        max=1e6,
        callback=_in_its_unit,
    ),
]
DistanceM = Annotated[
    float | None,
    typer.Option(
        "--distance-m",
        help="Detector distance in metres; by default that of the geometry.",
        min=1e-6,
        max=1e4,
        callback=_in_its_unit,
    ),
]
VoxelA = Annotated[
    float | None,
    typer.Option("--voxel-A", help="Voxel size of a density in A, if the file does not state it.", min=1e-6),
]
VoxelInvA = Annotated[
    float | None,
    typer.Option("--voxel-inv-A", help="Voxel size in 1/A, if the file does not state it.", min=1e-9),
]
NoticeS = Annotated[
    float,
    typer.Option(
        "--notice-s",
        help="Seconds from SIGTERM or SIGUSR1 to the end of the job; the run saves and stops within them.",
        min=1,
    ),
]
HangS = Annotated[
    float,
    typer.Option(
        "--hang-s",
        help="Treat ranks as hung after this many seconds without progress; 0: wait for ever.",
        min=0,
    ),
]
SettingsFile = Annotated[
    Path | None, typer.Option("--settings", metavar="FILE", help="Settings as a TOML file.")
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", metavar="", help="Replace a file that exists; its contents are lost.")
]
Overrides = Annotated[
    list[str], typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Change one setting; may be repeated.")
]


def refuse_existing(out: Path, overwrite: bool = False) -> None:
    """Refuse to overwrite an existing file unless the user asked for it."""
    if out.is_dir():
        raise FileError(out, "is a folder, not a file.", "Give the name of a file.")
    if out.exists() and not overwrite:
        raise FileError(
            out, "exists already and is not overwritten.", "Give another name, or --overwrite to replace it."
        )


def refuse_missing_folder(out: Path) -> None:
    """Refuse a path in a folder that does not exist, before work begins whose result could not be saved."""
    if not out.parent.is_dir():
        raise FileError(
            out,
            f"there is no folder '{out.parent}' to write it into.",
            "Make it first, or give another name.",
        )


def override(section: str, key: str, value: object) -> str:
    """A ``--set`` text for a string value, quoted so that it is not parsed as a number or a list.

    >>> override("particle", "structure", "a b.pdb")
    'particle.structure="a b.pdb"'
    """
    return f"{section}.{key}={json.dumps(str(value))}"


def with_flags_of(
    section_name: str, section: type[Section]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command one flag per setting of a section: ``[simulate] frames`` becomes ``--frames``.

    The command receives the given ones as ``flags``, a list of ``--set`` texts, so that settings file,
    ``--set`` and flags are checked by the same definition and fail with the same messages.
    """
    rows = describe_section(section_name, section)

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        own = [p for p in inspect.signature(command).parameters.values() if p.name != "flags"]
        kinds = {name: kind for row in rows for name, kind in _flags(row).items()}
        added = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
            for name, kind in kinds.items()
        ]

        @functools.wraps(command)
        def with_flags(**arguments: Any) -> Any:
            given = {flag: arguments.pop(flag) for flag in kinds}
            flags = [
                _override(section_name, flag, value) for flag, value in given.items() if value is not None
            ]
            return command(flags=flags, **arguments)

        with_flags.__signature__ = inspect.Signature([*own, *added])  # type: ignore[attr-defined]
        with_flags.__annotations__ = {p.name: p.annotation for p in [*own, *added]}
        return with_flags

    return decorate


def in_section(override: str, section: str) -> Override:
    """Move the setting of a flag to the section of another method, which has a setting of the same name.

    >>> in_section("emc.level=4", "mtip")
    'mtip.level=4'
    """
    typed = override.typed if isinstance(override, Override) else override
    return Override(f"{section}.{override.split('.', 1)[1]}", typed)


def _flags(row: SettingRow) -> dict[str, Any]:
    """The flags of a setting as annotations for Typer, by argument name."""
    flag = row.key.replace("_", "-")
    choices = f" One of: {row.type.replace(' | ', ', ')}." if "|" in row.type else ""
    default = f" \\[default: {row.default}]" if row.default not in ("", '""') else ""
    shared: dict[str, Any] = {
        "help": row.description + choices + default,
        "show_default": False,
        "rich_help_panel": f"Settings of \\[{row.section}]",
    }
    if row.type == "true or false":
        # The description mentions --no-FLAG: as a second flag in its column it would leave no room for text.
        shared["help"] = f"{row.description} Or --no-{flag}.{default}"
        return {
            row.key: Annotated[bool | None, typer.Option(f"--{flag}", metavar="", **shared)],
            _NOT + row.key: Annotated[bool | None, typer.Option(f"--no-{flag}", hidden=True)],
        }
    # Show only the first of several types: the flag names need the room, and the description has the others.
    kind = row.type.removeprefix("list of ").partition(" or ")[0]
    metavar = "NAME" if choices else kind.upper().replace(" ", "-")
    return {row.key: Annotated[str | None, typer.Option(f"--{flag}", metavar=metavar, **shared)]}


def _override(section: str, flag: str, value: str | bool) -> Override:
    """A flag as an override; error messages quote it as the user typed it."""
    key = flag.removeprefix(_NOT)
    typed = f"--{flag.replace('_', '-')}"
    if isinstance(value, bool):
        return Override(f"{section}.{key}={str(key == flag).lower()}", typed)
    return Override(f"{section}.{key}={value}", f"{typed} {value}")
