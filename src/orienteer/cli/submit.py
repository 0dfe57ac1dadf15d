"""``orienteer submit``: show the script of a batch job, then hand it to Slurm."""

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
            help="Settings with data under \\[run]; several files become a job array.",
            show_default=False,
        ),
    ] = [],  # noqa: B006 - typer makes a new list for each call
    over: Annotated[
        list[str],
        typer.Option(
            "--over",
            "--array-over",
            metavar="SECTION.KEY=A,B,...",
            help="Make an array over values, such as run.seed=1,2,3; may be repeated.",
        ),
    ] = [],  # noqa: B006
    after: Annotated[
        list[str],
        typer.Option(
            "--after",
            metavar="JOB",
            help="Start after this job has succeeded; afterany:JOB: after it has ended in any way.",
        ),
    ] = [],  # noqa: B006
    name: Annotated[str, typer.Option("--name", help="Name of the job; by default that of the run.")] = "",
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
    """Show the script of a batch job and hand it to Slurm; a job that is cut off resumes where it stopped."""
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
        raise SettingsError("no run is given.", "Give its settings file: orienteer submit run.toml --nodes 4")
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
    """The [cluster] settings of all files; they must agree, because an array is one job."""
    from orienteer.errors import SettingsError

    first = runs[0]
    for run in runs[1:]:
        if run.settings.cluster != first.settings.cluster:
            raise SettingsError(
                f"{run.file} and {first.file} have different settings under [cluster].",
                "The runs of an array share one script: make the files agree, or submit them one by one.",
            )
    return first.settings.cluster


def _check_archive(settings: ClusterSettings) -> None:
    from orienteer.errors import FileError

    archive = Path(settings.environment)
    if settings.environment and not archive.is_file():
        raise FileError(archive, "there is no such archive of an environment.", "Make it: orienteer pack")
    if settings.environment and ".tar" not in archive.name:
        raise FileError(
            archive, "is not an archive of an environment.", "Give the file that orienteer pack made."
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
    """Refuse a second job for a run that has one waiting or working, unless the new one comes after it."""
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
                f"{folder}: this run has a job already: {active[-1]}, which {states[active[-1]].words}.",
                f"Cancel it ({how_to_cancel(active)}), or start after it: --after afterany:{active[-1]}",
            )


def _remark(runs: "list[Variation]", settings: ClusterSettings) -> None:
    """Warn about combinations of settings that the user may not have meant."""
    from orienteer.run.standing import read_standing

    notes = [
        f"{run.folder} has finished; a job continues it only if a limit, such as --iterations, is higher now."
        for run in runs
        if read_standing(run.folder).state == "finished"
    ]
    if settings.preemptible and not (settings.preemptible_options or settings.partition or settings.qos):
        notes.append("Slurm does not know that the job may be preempted: give --partition or --qos for that.")
    if settings.at_once and len(runs) == 1:
        notes.append("There is only one run, so --at-once has no effect.")
    if settings.chain > 1:
        notes.append(f"{settings.chain} jobs are submitted in a row; each continues where the last ended.")
    if settings.chain > 1 and not settings.time:
        notes.append("Jobs in a row are meant for jobs with a time limit; give --time to set it.")
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
    output.print(f"\nTo add your own, copy one to {own} and edit it.", markup=False, soft_wrap=True)
