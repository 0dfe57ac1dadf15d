"""The ``orienteer`` command: one module per sub-command, joined here."""

import functools
import io
import signal
import sys
import warnings
from types import FrameType
from typing import Annotated

import typer
from rich.markup import escape

import orienteer
from orienteer.cli import (
    bench,
    campaign,
    compare,
    convert,
    demo,
    doctor,
    hits,
    inspect,
    live,
    pack,
    phase,
    plan,
    plot,
    reconstruct,
    replay,
    report,
    rotations,
    run,
    serve,
    settings,
    simulate,
    status,
    submit,
    validate,
    weather,
)
from orienteer.cli.command_line import Command, Group
from orienteer.cli.console import messages, output, run_reporting_errors
from orienteer.cli.ranks import check_command, join_ranks, leave_together
from orienteer.run.crew import Crew
from orienteer.run.signals import was_heard

app = typer.Typer(
    name="orienteer",
    cls=Group,
    help="3D structures from diffraction snapshots of particles in unknown orientations.",
    epilog="Every command also takes --debug, which shows where an error came from. Start with: demo",
    no_args_is_help=True,
    rich_markup_mode="rich",
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
# The chapters of --help, in the order in which people do the work.
_BEAM_TIME = "5. A beam time"
CHAPTERS = {
    "1. Begin": (demo, doctor),
    "2. Have data": (simulate, inspect, convert, hits),
    "3. Find the intensity": (settings, plan, reconstruct, plot, rotations),
    "4. Find the density, and trust it": (phase, validate, report, compare),
    _BEAM_TIME: (live, serve, replay),
    "6. Many ranks, and a cluster": (run, submit, status, weather, pack, bench),
}
for chapter, modules in CHAPTERS.items():
    for module in modules:
        name = module.__name__.rpartition(".")[2]
        app.command(name, rich_help_panel=chapter)(getattr(module, name))
app.add_typer(campaign.app, name="campaign", cls=Group, rich_help_panel=_BEAM_TIME)
for command in (*app.registered_commands, *campaign.app.registered_commands):
    command.cls = Command


def _print_version(wanted: bool) -> None:
    if wanted:
        output.print(f"orienteer {orienteer.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", metavar="", callback=_print_version, is_eager=True, help="Show the version."
        ),
    ] = False,
) -> None:
    """Options that come before the command."""


def _show_warning(message: Warning | str, *_: object) -> None:
    """Print a warning of the package or a library without the line of code that raised it."""
    messages.print(f"[yellow]note[/] {escape(str(message))}", soft_wrap=True)


def _terminate(number: int, _: FrameType | None) -> None:
    if not was_heard():
        sys.exit(128 + number)


def _interrupt(_: int, __: FrameType | None) -> None:
    if not was_heard():  # otherwise the command is already stopping
        raise KeyboardInterrupt


def main() -> None:
    """Run the command line and leave with its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # show ? for characters that the terminal cannot show
            stream.reconfigure(errors="replace")
    # If a batch system ends the job, SystemExit lets temporary and half-written files be cleaned up.
    signal.signal(signal.SIGTERM, _terminate)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup ignores it
        signal.signal(signal.SIGHUP, _terminate)
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    if signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL:  # batch systems send it before they end a job
        signal.signal(signal.SIGUSR1, _terminate)
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    debug = len(arguments) < len(sys.argv) - 1
    as_json = "--json" in arguments
    team: Crew | None = None
    # Typer reports a wrong command line itself; with --json, run_reporting_errors does, as JSON.
    command = functools.partial(app, arguments, prog_name="orienteer", standalone_mode=not as_json)

    def carry_out() -> object:
        nonlocal team
        team = join_ranks(arguments)
        if team is not None:
            check_command(arguments, team)
        return command()

    status = run_reporting_errors(carry_out, debug, as_json)
    if team is not None:
        leave_together(team, status)
    sys.exit(status)
