"""``orienteer submit``: hand runs to Slurm, after showing the script."""

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from orienteer.cli.console import messages, output, print_json, print_table
from orienteer.cli.options import AsJson, Overrides, with_flags_of
from orienteer.cluster.settings import ClusterSettings

if TYPE_CHECKING:
    from orienteer.cluster.job import Job
    from orienteer.cluster.submission import Submission
    from orienteer.run.variations import Variation


@with_flags_of("cluster", ClusterSettings)
def submit(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN.toml...",
            help="Settings with data under \\[run]; several become an array.",
            show_default=False,
        ),
    ] = [],  # noqa: B006 - typer makes a new list for each call
    over: Annotated[
        list[str],
        typer.Option(
            "--over",
            "--array-over",
            metavar="SECTION.KEY=A,B,...",
            help="An array over values, such as run.seed=1,2,3; may be repeated.",
        ),
    ] = [],  # noqa: B006
    after: Annotated[
        list[str],
        typer.Option(
            "--after",
            metavar="JOB",
            help="Start when this job has ended well; afterany:JOB: however it ends.",
        ),
    ] = [],  # noqa: B006
    name: Annotated[str, typer.Option("--name", help="Name of the job; otherwise that of the run.")] = "",
    set_: Overrides = [],  # noqa: B006
    dry_run: Annotated[
        bool, typer.Option("--dry-run", metavar="", help="Show the script and submit nothing.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", metavar="", help="Do not ask before submitting.")
    ] = False,
    sites: Annotated[bool, typer.Option("--sites", metavar="", help="List the known sites.")] = False,
    as_json: AsJson = False,
    *,
    flags: list[str],
) -> None:
    """Show the script of a batch job and hand it to Slurm; the job resumes, however often it is cut off."""
    from orienteer.cluster.limits import check_limits, read_partitions
    from orienteer.cluster.script import job_script
    from orienteer.cluster.site import find_site
    from orienteer.cluster.submission import dependency, submit_job
    from orienteer.errors import SettingsError
    from orienteer.run.variations import variations

    if sites:
        _list_sites()
        return
    if not files:
        raise SettingsError("which run?", "Give its settings file: orienteer submit run.toml --nodes 4")
    runs = variations(files, [*set_, *flags], over)
    site = find_site(runs[0].settings.cluster.site)
    settings = site.settings(_asked_for(runs))
    _check_archive(settings)
    dependency(after)
    job = _job(runs, settings, name)
    script = job_script(job, site, settings, shlex.join(["orienteer", *sys.argv[1:]]))
    if not dry_run:
        check_limits(settings, read_partitions())
        _refuse_doubles(runs, after)
    if not as_json:
        output.print(script.rstrip(), markup=False, soft_wrap=True)
    _remark(runs, settings)
    if dry_run:
        if as_json:
            print_json({"name": job.name, "script": script, "runs": [run.folder for run in runs]})
        return
    if not (yes or as_json) and sys.stdin.isatty() and sys.stdout.isatty():
        typer.confirm("Submit it?", default=True, abort=True, err=True)
    taken = submit_job(job, script, settings, after)
    if as_json:
        print_json({"jobs": taken.numbers, "script": taken.script, "runs": taken.records})
    else:
        _tell(job, taken)


def _asked_for(runs: "list[Variation]") -> ClusterSettings:
    """What all of the files ask the cluster for; an array is one job, so they have to agree."""
    from orienteer.errors import SettingsError

    first = runs[0]
    for run in runs[1:]:
        if run.settings.cluster != first.settings.cluster:
            raise SettingsError(
                f"{run.file} asks for other things under [cluster] than {first.file}.",
                "The runs of an array share one script: submit them one by one, or make the files agree.",
            )
    return first.settings.cluster


def _check_archive(settings: ClusterSettings) -> None:
    from orienteer.errors import FileError

    archive = Path(settings.environment)
    if settings.environment and not archive.is_file():
        raise FileError(archive, "there is no such archive of an environment.", "Make it: orienteer pack")
    if settings.environment and ".tar" not in archive.name:
        raise FileError(
            archive, "is no archive of an environment.", "Give the file that orienteer pack made."
        )


def _job(runs: "list[Variation]", settings: ClusterSettings, name: str) -> "Job":
    from orienteer.cluster.job import Job, Work

    works = []
    for run in runs:
        own = [text for text in run.overrides if not text.startswith("cluster.")]
        overrides = [part for text in own for part in ("--set", str(text))]
        limits = ("--restarts", str(settings.restarts), "--notice-s", str(settings.notice_s))
        command = ("run", str(run.file), *overrides, *limits)
        works.append(Work(command, run.folder))
    return Job.of(works, Path.cwd(), name)


def _refuse_doubles(runs: "list[Variation]", after: list[str]) -> None:
    """A run for which a job waits or works already needs no other one, unless that comes after it."""
    from orienteer.cluster.queue import read_queue
    from orienteer.cluster.records import how_to_cancel, read_records
    from orienteer.errors import OrienteerError

    recorded = {run.folder: [record.number for record in read_records(run.folder)] for run in runs}
    numbers = [number for folder in recorded.values() for number in folder]
    states = read_queue(numbers, newest_s=5).jobs
    awaited = {text.rpartition(":")[2] for text in after}
    for folder, jobs in recorded.items():
        active = [number for number in jobs if number in states and not states[number].is_over]
        if active and not awaited & {*active, *(number.partition("_")[0] for number in active)}:
            raise OrienteerError(
                f"{folder}: job {active[-1]} is there for this run already; it {states[active[-1]].words}.",
                f"Take it back ({how_to_cancel(active)}), or come after it: --after afterany:{active[-1]}",
            )


def _remark(runs: "list[Variation]", settings: ClusterSettings) -> None:
    """What the user may not have meant."""
    from orienteer.run.standing import read_standing

    notes = [
        f"{run.folder} has finished; a job goes on only where a limit, such as --iterations, is higher now."
        for run in runs
        if read_standing(run.folder).state == "finished"
    ]
    if settings.preemptible and not (settings.preemptible_options or settings.partition or settings.qos):
        notes.append("Nothing tells Slurm that the job may be sent away: give --partition or --qos for that.")
    if settings.at_once and len(runs) == 1:
        notes.append("There is but one run, so --at-once has nothing to hold back.")
    if settings.chain > 1:
        notes.append(f"It is submitted {settings.chain} times in a row; each goes on where the last ended.")
    if settings.chain > 1 and not settings.time:
        notes.append("Jobs in a row are for jobs that are cut off; give --time to say when.")
    for note in notes:
        messages.print(f"[yellow]note[/] {escape(note)}", soft_wrap=True)


def _tell(job: "Job", taken: "Submission") -> None:
    folder = job.works[0].folder if not job.is_array else Path(os.path.relpath(job.logs.parent, job.folder))
    numbers = ", then ".join(taken.numbers)
    what = f"{len(job.works)} runs as job" if job.is_array else "job"
    output.print(f"\nSubmitted {what} {numbers}.", markup=False, soft_wrap=True)
    print_table(
        [
            ("look", f"orienteer status {shlex.quote(str(folder))}"),
            ("log", taken.records[0].log if not job.is_array else str(job.log_pattern)),
            ("stop", shlex.join(["scancel", *taken.numbers])),
        ]
    )


def _list_sites() -> None:
    from orienteer.cluster.site import all_sites, site_folders

    print_table(
        [(site.name, site.about, str(site.path)) for site in all_sites()],
        header=("site", "what it is", "file"),
    )
    own = site_folders()[0]
    output.print(f"\nYours go into {own}: copy one there and change it.", markup=False, soft_wrap=True)
