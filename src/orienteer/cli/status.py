"""``orienteer status``: which runs are at work and where, from their folders and, for jobs, from Slurm."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from orienteer.cli.console import messages, output, print_json, print_table
from orienteer.cli.options import AsJson
from orienteer.compute.nearest import meant_instead
from orienteer.compute.words import counted, time_in_words

if TYPE_CHECKING:
    from orienteer.cluster.job_state import JobState
    from orienteer.cluster.queue import Queue
    from orienteer.cluster.records import JobRecord
    from orienteer.run.standing import Standing

HEADER = ("run", "state", "step", "halves agree to", "left", "job", "what it does")
DEPTH = 3


def status(
    places: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            help="Runs, their settings files, or folders with runs; by default this folder.",
            show_default=False,
        ),
    ] = [],  # noqa: B006 - typer makes a new list for each call
    all_: Annotated[
        bool, typer.Option("--all", metavar="", help="Also list all jobs that are over.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show where runs stand: host, step, time left, and why jobs wait. Asks Slurm at most twice a minute."""
    from orienteer.cluster.queue import read_queue
    from orienteer.cluster.records import read_records
    from orienteer.live.standing import read_live_standing
    from orienteer.run.standing import read_standing
    from orienteer.source.journal import is_live_run

    folders = find_runs(places or [Path()])
    standings = [(read_live_standing if is_live_run(folder) else read_standing)(folder) for folder in folders]
    records = {folder: read_records(folder) for folder in folders}
    # There is no need to ask Slurm about a run that has finished.
    asked = [
        record.number
        for standing in standings
        if standing.state != "finished"
        for record in records[standing.path]
    ]
    queue = read_queue(asked)
    rows = [(standing, _jobs(records[standing.path], queue, all_)) for standing in standings]
    if as_json:
        print_json({"runs": [_as_json(*row) for row in rows], "slurm": _slurm_as_json(queue)})
        return
    if not rows:
        output.print("There is no run here.  Give the folder of a run, or a folder that holds runs.")
        return
    print_table([line for row in rows for line in _lines(*row)], header=HEADER)
    for standing, jobs in rows:
        for note in _notes(standing, jobs):
            messages.print(f"[yellow]note[/] {escape(note)}", soft_wrap=True)
    if queue.problem and asked:
        old = f"; shown is its answer of {time_in_words(queue.age_s)} ago" if queue.jobs else ""
        messages.print(
            f"[yellow]note[/] The state of jobs is not known: {escape(queue.problem)}{old}.", soft_wrap=True
        )


def find_runs(places: list[Path]) -> list[Path]:
    """The folders of the runs that the user means, each once."""
    from orienteer.errors import FileError
    from orienteer.run.settings import Settings
    from orienteer.settings.loading import load_settings

    found: dict[Path, None] = {}
    for place in places:
        if place.suffix == ".toml" and place.is_file():
            found[load_settings(Settings, place).run.folder(place)] = None
        elif place.is_dir():
            found.update(dict.fromkeys(_runs_below(place, DEPTH)))
        else:
            hint = meant_instead(place, "Give the folder of a run, or its settings file.")
            raise FileError(place, "there is no such run.", hint)
    return list(found)


def _runs_below(folder: Path, depth: int) -> list[Path]:
    """The folder itself if it is a run, or the runs in it; the halves of a validation are not listed."""
    from orienteer.cluster.records import read_records
    from orienteer.run.directory import RunDirectory
    from orienteer.source.journal import is_live_run

    if is_live_run(folder):
        growing = folder / "map"
        return [folder, growing] if RunDirectory(growing).is_run else [folder]
    if RunDirectory(folder).is_run or read_records(folder):
        return [folder]
    if depth == 0:
        return []
    below = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    return [run for path in below for run in _runs_below(path, depth - 1)]


Jobs = list[tuple["JobRecord", "JobState | None"]]


def _jobs(records: "list[JobRecord]", queue: "Queue", all_: bool) -> Jobs:
    """The jobs of a run, each with its state in Slurm; if all are over, only the last of them."""
    jobs: Jobs = [(record, queue.jobs.get(record.number)) for record in records]
    open_ = [job for job in jobs if job[1] is not None and not job[1].is_over]
    return jobs if all_ else open_ or jobs[-1:]


def _lines(standing: "Standing", jobs: Jobs) -> list[tuple[str, ...]]:
    """The rows of a run: one for its first job or none, and one more for each further job."""
    state = {"new": "not begun"}.get(standing.state, standing.state)
    if standing.state == "working":
        state = f"works on {standing.host}"
    elif standing.state in ("new", "stopped") and any(job and job.is_working for _, job in jobs):
        state = "starts"
    step = str(standing.iteration or "")
    if step and standing.stage and standing.n_stages:
        step += f" (stage {standing.stage} of {standing.n_stages})"
    first = (
        str(standing.path),
        state,
        step,
        "" if standing.agrees_to_A is None else f"{standing.agrees_to_A:.3g} A",
        "" if standing.seconds_left is None else time_in_words(standing.seconds_left),
    )
    shown = [(record.number, _said(record, job)) for record, job in jobs] or [("", "")]
    if standing.state == "finished" or standing.method == "live":
        shown = [("", standing.reason)]
    elif standing.state == "failed" and not any(job and not job.is_over for _, job in jobs):
        shown = [(jobs[-1][0].number if jobs else "", standing.reason)]
    elif standing.state == "stopped" and not jobs:
        shown = [("", "was stopped; the same command continues")]
    return [(*(first if i == 0 else ("",) * len(first)), *job) for i, job in enumerate(shown)]


def _said(record: "JobRecord", job: "JobState | None") -> str:
    if job is None:
        return "is no longer known to Slurm"
    if not job.is_working:
        return job.words
    where = f" on {job.nodes}" if job.nodes else f" on {counted(record.nodes, 'node')}"
    left = "" if job.seconds_left is None else f", {time_in_words(job.seconds_left)} of its time left"
    return f"{job.words}{where}{left}"


def _notes(standing: "Standing", jobs: Jobs) -> list[str]:
    """Notes on jobs that the user may want to act on."""
    open_ = [job for _, job in jobs if job is not None and not job.is_over]
    working = [job for job in open_ if job.is_working]
    if standing.state in ("stopped", "new", "failed") and jobs and not open_:
        record, job = jobs[-1]
        return (
            []
            if job is None
            else [f"{standing.path}: job {record.number} {job.words}; its log: {record.log}"]
        )
    if working and standing.seconds_left and len(open_) == 1:
        left = working[0].seconds_left
        if left is not None and standing.seconds_left > left:
            short = time_in_words(standing.seconds_left - left)
            behind = f"--after afterany:{jobs[-1][0].number}"
            return [
                f"{standing.path}: its job will end {short} before the run does; submit another with {behind}"
            ]
    return []


def _as_json(standing: "Standing", jobs: Jobs) -> dict[str, Any]:
    told = [
        {
            **dataclasses.asdict(record),
            "number": record.number,
            "slurm": None if job is None else _with_words(job),
        }
        for record, job in jobs
    ]
    return {**dataclasses.asdict(standing), "jobs": told}


def _with_words(job: "JobState") -> dict[str, Any]:
    return {**dataclasses.asdict(job), "words": job.words}


def _slurm_as_json(queue: "Queue") -> dict[str, Any]:
    return {"age_s": queue.age_s, "problem": queue.problem}
