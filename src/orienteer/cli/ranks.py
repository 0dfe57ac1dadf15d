"""Commands that run on several ranks: only the leader prints, and all ranks exit with the same status."""

import io
import sys

from rich.console import Console
from rich.markup import escape

from orienteer.cli.console import print_json
from orienteer.compute.ranks.launchers import is_launched
from orienteer.errors import OrienteerError
from orienteer.run import fault
from orienteer.run.crew import Crew, crew
from orienteer.run.fault import Fault

# Any other command would run once per rank, and all ranks would write the same files.
PARALLEL = ("reconstruct",)


def join_ranks(arguments: list[str]) -> Crew | None:
    """The ranks that were started with this one, or None if it is alone; only the leader prints."""
    if not is_launched():
        return None
    team = crew()
    if team.is_alone:
        return None
    fault.speak = _speak_json if "--json" in arguments else _speak
    if not team.leads:
        # Keep the output of the others: leave_together prints it if this rank alone has failed.
        sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
    return team


def check_command(arguments: list[str], team: Crew) -> None:
    """Refuse a command that works in one process only."""
    name = next((argument for argument in arguments if not argument.startswith("-")), "")
    if name and name not in PARALLEL:
        raise OrienteerError(
            f"'{name}' works in one process, but {team.size} ranks were started.",
            f"Start it without mpiexec or srun. Commands for many ranks: {', '.join(PARALLEL)}.",
        )
    _refuse_other_arguments(arguments, team)


def _refuse_other_arguments(arguments: list[str], team: Crew) -> None:
    """Refuse ranks with different arguments: only those of rank 0 would be used, without a warning."""
    first, *others = team.everyone(arguments)
    for rank, other in enumerate(others, start=1):
        if other != first:
            at = next((n for n, (a, b) in enumerate(zip(first, other, strict=False)) if a != b), -1)
            told = (
                " ".join(given[max(0, at - 1) : at + 1] if at >= 0 else given) for given in (other, first)
            )
            here, there = told
            raise OrienteerError(
                f"{team.name(rank)} was started with '{here}', and {team.name(0)} with '{there}'.",
                "Start all ranks with the same command.",
            )


def leave_together(team: Crew, status: int) -> None:
    """Exit with this status; after a failure, also end other ranks that are still at work."""
    if status != 0 and not team.all_leave():
        if isinstance(sys.stderr, io.StringIO):
            print(f"{team.name(team.rank)}: {sys.stderr.getvalue().strip()}", file=sys.__stderr__, flush=True)
        team.abort(status)


def _speak(told: Fault) -> None:
    console = Console(file=sys.__stderr__, highlight=False)
    before = "" if told.kind == "signal" else "[bold red]Error:[/] "
    console.print(f"{before}{escape(told.message)}", soft_wrap=True)
    console.print(escape(told.hint), soft_wrap=True)


def _speak_json(told: Fault) -> None:
    if told.kind == "signal":
        _speak(told)
        return
    sys.stdout = sys.__stdout__ or sys.stdout
    print_json({"error": told.message, "hint": told.hint})
    sys.stdout.flush()
