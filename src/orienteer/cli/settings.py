"""``orienteer settings``: every setting with its default, as a file to start from."""

from pathlib import Path
from typing import Annotated

import typer

from orienteer.cli.console import output, print_json
from orienteer.cli.options import AsJson, Overwrite, refuse_existing
from orienteer.compute.atomic import atomic_path


def settings(
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write the file instead of showing it.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Show every setting with its meaning and default, as a TOML file to start from."""
    from orienteer.run.settings import Settings
    from orienteer.settings.describing import describe_settings, example_toml

    if as_json:
        print_json(describe_settings(Settings))
    elif out is None:
        output.print(example_toml(Settings), end="", markup=False, soft_wrap=True)
    else:
        refuse_existing(out, overwrite)
        with atomic_path(out) as temporary:
            temporary.write_text(example_toml(Settings))
        output.print(f"Written to {out}; take away the # of what you change.", markup=False, soft_wrap=True)
