"""``orienteer plan``: where and how a reconstruction would run, how much memory and time it would take."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from orienteer.cli.console import messages, print_json, print_table
from orienteer.cli.opening import open_patterns
from orienteer.cli.options import (
    AsJson,
    Device,
    DistanceM,
    Geometry,
    Overrides,
    SettingsFile,
    WavelengthA,
    with_flags_of,
)
from orienteer.cli.progress import show_steps
from orienteer.reconstruction.settings import EmcSettings


@with_flags_of("emc", EmcSettings)
def plan(
    data: Annotated[Path, typer.Argument(help="Patterns, in any known format.")],
    settings: SettingsFile = None,
    set_: Overrides = [],  # noqa: B006 - typer makes a new list for each call
    geometry: Geometry = None,
    wavelength_A: WavelengthA = None,
    distance_m: DistanceM = None,
    device: Device = "auto",
    as_json: AsJson = False,
    *,
    flags: list[str],
) -> None:
    """Say how a reconstruction would run: device, precision, tiles, batches, memory and expected time."""
    from orienteer.reconstruction.emc import Emc
    from orienteer.run.settings import Settings
    from orienteer.settings.loading import load_settings

    chosen = load_settings(Settings, settings, [*set_, *flags])
    source = open_patterns(data, geometry, wavelength_A, distance_m)
    with show_steps("Planning"):
        emc = Emc(source, chosen.emc, device=device)
    if as_json:
        print_json({**emc.plan.to_json(), "remarks": emc.remarks})
        return
    print_table(emc.plan.describe())
    for remark in emc.remarks:
        messages.print(f"[dim]{escape(remark)}[/]", soft_wrap=True)
