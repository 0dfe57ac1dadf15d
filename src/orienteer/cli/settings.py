"""``orienteer settings``: every setting with its default, as a file to start from."""

from pathlib import Path
from typing import Annotated

import typer

from orienteer.cli.console import output, print_json
from orienteer.cli.options import AsJson, Overwrite, refuse_existing
from orienteer.compute.atomic import atomic_path
from orienteer.errors import SettingsError


def settings(
    sections: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SECTION]...", help="Sections such as emc and phase; all by default.", show_default=False
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write the file instead of showing it.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Show every setting with its meaning and default, as a TOML file to start from."""
    from orienteer.run.settings import Settings
    from orienteer.settings.describing import describe_settings, example_toml

    wanted = sections or list(Settings.model_fields)
    for name in wanted:
        if name not in Settings.model_fields:
            known = ", ".join(Settings.model_fields)
            raise SettingsError(f"there is no section '{name}' of settings.", f"The sections are: {known}.")
    rows = [row for row in describe_settings(Settings) if row.section in wanted]
    if out is not None:
        refuse_existing(out, overwrite)
        with atomic_path(out) as temporary:
            temporary.write_text(example_toml(rows))
    if as_json:
        print_json(rows)
    elif out is None:
        output.print(example_toml(rows), end="", markup=False, soft_wrap=True)
    else:
        output.print(
            f"Written to {out}; remove the # from the lines that you change.", markup=False, soft_wrap=True
        )
