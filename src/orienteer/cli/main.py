"""The ``orienteer`` command: one module per sub-command, joined here."""

import functools
import sys
from typing import Annotated

import typer

import orienteer
from orienteer.cli import convert, demo, doctor, inspect, rotations, settings, simulate
from orienteer.cli.console import output, run_reporting_errors

app = typer.Typer(
    name="orienteer",
    help="3D structures from diffraction snapshots of particles in unknown orientations.",
    epilog="Every command also takes --debug, which shows where an error came from. Start with: demo",
    no_args_is_help=True,
    rich_markup_mode="rich",
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (demo, simulate, inspect, convert, rotations, settings, doctor):
    name = module.__name__.rpartition(".")[2]
    app.command(name)(getattr(module, name))


def _print_version(wanted: bool) -> None:
    if wanted:
        output.print(f"orienteer {orienteer.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options that come before the command."""


def main() -> None:
    """Run the command line and leave with its exit status."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    debug = len(arguments) < len(sys.argv) - 1
    command = functools.partial(app, arguments, prog_name="orienteer")
    sys.exit(run_reporting_errors(command, debug, "--json" in arguments))
