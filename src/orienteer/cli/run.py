"""``orienteer run``: a reconstruction on many ranks, restarted when one of them is lost."""

import functools
import inspect
import io
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Annotated, Any, cast

import typer
from rich.markup import escape

from orienteer.cli.console import Stopped, messages
from orienteer.cli.reconstruct import reconstruct
from orienteer.compute.words import counted
from orienteer.errors import OrienteerError, SettingsError

Ranks = Annotated[
    int | None,
    typer.Option(
        "--ranks",
        help="Processes that share the work; by default one per task of the Slurm job, or one without Slurm.",
        min=1,
        show_default=False,
    ),
]
Restarts = Annotated[
    int, typer.Option("--restarts", help="How often to restart after a rank was lost.", min=0)
]
_OWN = ("--ranks", "--restarts")


def _with_options_of_reconstruct(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of ``reconstruct`` as well as its own."""
    own = [p for p in inspect.signature(command).parameters.values() if p.name != "options"]
    others = [
        p.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for p in inspect.signature(reconstruct).parameters.values()
        if p.name != "data"
    ]

    @functools.wraps(command)
    def with_options(**arguments: Any) -> Any:
        options = {p.name: arguments.pop(p.name) for p in others}
        return command(**arguments, options=options)

    with_options.__signature__ = inspect.Signature([*own, *others])  # type: ignore[attr-defined]
    with_options.__annotations__ = {p.name: p.annotation for p in [*own, *others]}
    return with_options


@_with_options_of_reconstruct
def run(
    *,
    what: Annotated[
        Path, typer.Argument(metavar="DATA|RUN.toml", help="Patterns, or settings with data under \\[run].")
    ],
    ranks: Ranks = None,
    restarts: Restarts = 3,
    options: dict[str, Any],
) -> None:
    """Reconstruct on many ranks, and restart from the last checkpoint when a rank is lost."""
    from orienteer.run.available import available_ranks
    from orienteer.run.checkpoint import saved_iteration
    from orienteer.run.launch import Ending, launch
    from orienteer.run.supervise import supervise

    folder = cast(Path, options["out"])
    typed = _without(sys.argv[sys.argv.index("run") + 1 :], what)
    if what.suffix == ".toml":
        folder, given = _told_by(what, options, "--out" in _names(typed))
    else:
        given = [str(what)]
    program = [sys.executable, "-m", "orienteer", "reconstruct", *given, *typed]

    run_before = _run_id(folder)
    # JSON is a single result: hold back the output of ranks until it is clear that they need no restart.
    held = io.StringIO() if options["as_json"] else None

    def start() -> Ending:
        _empty(held, sys.stderr)
        now = available_ranks(ranks)
        if now.lost_nodes:
            _say(f"Without {', '.join(now.lost_nodes)}: {counted(now.n_ranks, 'rank')}.")
        ending = launch(program, now.n_ranks, now.lost_nodes, *([] if held is None else [held]))
        if _run_id(folder) not in (None, run_before):  # the new run has begun: resume it from now on
            program[:] = [word for word in program if word != "--restart"]
        return ending

    def saved(folder: Path) -> int:
        # Until the new run has begun, the checkpoint there belongs to the old run, which is not resumed.
        return 0 if "--restart" in program else saved_iteration(folder)

    status, why = supervise(folder, start, restarts, _say, saved)
    _empty(held, sys.stderr if why else sys.stdout)
    if why:
        raise OrienteerError(
            why, "What was done is kept; fix the cause, then the same command resumes the run."
        )
    if status:
        raise Stopped(status)


def _empty(held: io.StringIO | None, into: IO[str]) -> None:
    """Write the held-back output to ``into``."""
    if held is not None:
        into.write(held.getvalue())
        into.flush()
        held.seek(0)
        held.truncate()


def _run_id(folder: Path) -> str | None:
    """The id of the run in the folder; None if there is no run."""
    from orienteer.run.directory import RunDirectory

    with suppress(OrienteerError):
        return str(RunDirectory(folder).describe()["run_id"])
    return None


def _told_by(file: Path, options: dict[str, Any], has_out: bool) -> tuple[Path, list[str]]:
    """The folder of the run that a settings file describes, and the equivalent ``reconstruct`` arguments."""
    from orienteer.run.settings import Settings
    from orienteer.settings.loading import load_settings

    if options["settings"] is not None:
        raise SettingsError(f"{file} is the settings file already.", "Leave out --settings.")
    chosen = load_settings(Settings, file, options["set_"]).run
    folder = options["out"] if has_out else chosen.folder(file)
    given = [str(chosen.patterns(file)), "--settings", str(file), "--out", str(folder)]
    given += ["--method", chosen.method, "--seed", str(chosen.seed), "--device", chosen.device]
    if chosen.geometry:
        given += ["--geometry", chosen.geometry]
    if chosen.wavelength_A:
        given += ["--wavelength-A", str(chosen.wavelength_A)]
    if chosen.distance_m:
        given += ["--distance-m", str(chosen.distance_m)]
    return folder, given


def _without(typed: Sequence[str], what: Path) -> list[str]:
    """The typed words that go to the ranks: all but the data argument and this command's own options.

    >>> _without(["--ranks", "4", "hits.h5", "--restarts=2", "--out", "run"], Path("hits.h5"))
    ['--out', 'run']
    """
    left: list[str] = []
    words = iter(typed)
    is_found = False
    for word in words:
        if word in _OWN:
            next(words, None)
        elif word.partition("=")[0] in _OWN:
            continue
        elif not is_found and not word.startswith("-") and Path(word) == what:
            is_found = True
        else:
            left.append(word)
    return left


def _names(typed: Sequence[str]) -> set[str]:
    return {word.partition("=")[0] for word in typed}


def _say(text: str) -> None:
    messages.print(f"[yellow]note[/] {escape(text)}", soft_wrap=True)
