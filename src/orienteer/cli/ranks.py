"""A command that several ranks carry out together: one of them speaks, and all leave in the same way."""

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

# Every other command would be carried out as often as there are ranks, and write the same files.
PARALLEL = ("reconstruct",)


def join_ranks(arguments: list[str]) -> Crew | None:
    """The ranks that were started with this one, None when it is alone; all but the leader fall silent."""
    if not is_launched():
        return None
    team = crew()
    if team.is_alone:
        return None
    fault.speak = _speak_json if "--json" in arguments else _speak
    if not team.leads:
        # What they would say is kept, in case that it turns out to be news.
        sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
    return team


def check_command(arguments: list[str], team: Crew) -> None:
    """Refuse a command that is for one process."""
    name = next((argument for argument in arguments if not argument.startswith("-")), "")
    if name and name not in PARALLEL:
        raise OrienteerError(
            f"'{name}' works in one process, and {team.size} ranks were started.",
            f"Start it without mpiexec or srun; on many ranks works: {', '.join(PARALLEL)}.",
        )
    _refuse_other_arguments(arguments, team)


def _refuse_other_arguments(arguments: list[str], team: Crew) -> None:
    """Refuse ranks with other arguments: the first one's would hold, and nobody be told of the others."""
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
    """Leave with this exit status; where the other ranks are still at work, they are ended."""
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
