"""``orienteer report``: one page with everything about a run."""

import warnings
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from orienteer.cli.console import messages, output, print_json
from orienteer.cli.options import AsJson
from orienteer.cli.progress import show_steps
from orienteer.errors import FileError
from orienteer.run.directory import RunDirectory


def report(
    run: Annotated[Path, typer.Argument(help="The folder of a reconstruction.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FOLDER",
            help="Write the page and copies of the maps to this folder, to pass them on.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write report.html about a run, and a script that opens its maps in ChimeraX."""
    from orienteer.report.chimerax import NAME
    from orienteer.report.page import write_report

    with warnings.catch_warnings(record=True) as noticed:
        warnings.simplefilter("always")
        try:
            with show_steps("Writing the report"):
                written = write_report(run, out)
        except FileError as error:
            if out is None and Path(error.path).is_relative_to(run) and RunDirectory(run).is_run:
                error.hint = "Check its permissions and free space, or give another folder with --out."
            raise
    remarks = [str(one.message) for one in noticed]
    script = written.with_name(NAME)
    if as_json:
        chimerax = str(script) if script.exists() else None
        print_json({"report": str(written), "chimerax": chimerax, "remarks": remarks})
        return
    for remark in remarks:
        messages.print(f"[yellow]note[/] {escape(remark)}", soft_wrap=True)
    if script.exists():
        output.print(f"Maps   {script} (in ChimeraX)", markup=False, soft_wrap=True)
    output.print(f"Open   {written}", style="bold", markup=False, soft_wrap=True)
