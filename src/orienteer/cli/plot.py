"""``orienteer plot``: one picture of a reconstruction, while it works or afterwards."""

from pathlib import Path
from typing import Annotated

import typer

from orienteer.cli.console import output, print_json
from orienteer.cli.options import AsJson
from orienteer.cli.run_report import run_report
from orienteer.plot.saving import save_picture


def plot(
    run: Annotated[Path, typer.Argument(help="The folder of a reconstruction.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="PNG", help="Where to draw; by default RUN.png in this folder."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Draw a reconstruction: intensity, curves per iteration, directions of the beam, fluence."""
    from orienteer.run.run import Run

    opened = Run.open(run)
    picture = save_picture(opened.show(str(run)), out or Path(f"{run.resolve().name}.png"))
    if as_json:
        print_json({**run_report(opened), "picture": str(picture)})
    else:
        output.print(f"Open   {picture}", style="bold", markup=False, soft_wrap=True)
