"""``orienteer campaign``: the runs of a beam time in one database, and rules that process them."""

import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from orienteer.cli.campaign_options import Address, RunName, open_campaign
from orienteer.cli.campaign_rule import rule
from orienteer.cli.campaign_words import in_rows, job_rows, run_rows, sums
from orienteer.cli.console import messages, output, print_json, print_table
from orienteer.cli.options import AsJson, Overwrite, refuse_existing
from orienteer.cli.stopping import telling_what_is_written, telling_when_stopped
from orienteer.compute.words import counted

if TYPE_CHECKING:
    from orienteer.campaign.campaign import Campaign

app = typer.Typer(
    help="The runs, samples, shots and jobs of a beam time in one database, and rules that process them.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@app.command()
def init(address: Address, as_json: AsJson = False) -> None:
    """Create a campaign, or bring an existing one to the newest layout."""
    with open_campaign(address, create=True) as campaign:
        told = {"campaign": str(campaign.database), **_sums(campaign)}
    if as_json:
        print_json(told)
    else:
        output.print(f"{told['campaign']} is ready: {sums(told)}.", markup=False, soft_wrap=True)


@app.command()
def add(
    address: Address,
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH...", help="Data, runs or live runs.", show_default=False),
    ],
    sample: Annotated[str, typer.Option("--sample", help="What was measured.")] = "",
    name: Annotated[str, typer.Option("--name", help="Name of the run; by default that of the path.")] = "",
    tags: Annotated[list[str], typer.Option("--tag", help="A tag; may be repeated.")] = [],  # noqa: B006
    as_json: AsJson = False,
) -> None:
    """Add runs with the facts from their folders; repeat it to bring them up to date."""
    from orienteer.cli.campaign_adding import add_path
    from orienteer.errors import SettingsError

    if name and len(paths) > 1:
        raise SettingsError("--name is for one run.", "Leave it out, or add the runs one by one.")
    added = []
    with open_campaign(address) as campaign:
        for path in paths:
            run = add_path(campaign, path, name, sample)
            if tags:
                campaign.tag(run, add=tags)
            added.append(campaign.run(run))
    if as_json:
        print_json({"runs": added})
    else:
        print_table(run_rows(added), header=("run", "sample", "shots", "hits", "tags", "changed"))


@app.command("list")
def list_(
    address: Address,
    search: Annotated[str, typer.Option("--search", help="A part of a name, sample, tag or note.")] = "",
    tag: Annotated[str, typer.Option("--tag", help="Only runs with this tag.")] = "",
    sample: Annotated[str, typer.Option("--sample", help="Only runs of this sample.")] = "",
    sort: Annotated[
        str,
        typer.Option(
            "--sort", help="modified, created, name, n_shots or n_hits; with - in front, largest first."
        ),
    ] = "-modified",
    limit: Annotated[int, typer.Option("--limit", help="How many at most.", min=1, max=1000)] = 50,
    offset: Annotated[int, typer.Option("--offset", help="How many to skip first.", min=0)] = 0,
    as_json: AsJson = False,
) -> None:
    """List runs, the last changed first."""
    with open_campaign(address) as campaign:
        total, found = campaign.runs(search, tag, sample, sort, offset, limit)
        told = {**_sums(campaign), "total": total, "runs": found}
    if as_json:
        print_json(told)
        return
    print_table(run_rows(found), header=("run", "sample", "shots", "hits", "tags", "changed"))
    shown = "" if total == len(found) else f"{len(found)} of {total} shown; "
    output.print(f"\n{shown}{sums(told)}.", markup=False, soft_wrap=True)


@app.command()
def show(address: Address, run: RunName, as_json: AsJson = False) -> None:
    """Show everything that is known about a run."""
    with open_campaign(address) as campaign:
        told = campaign.run(run)
    if as_json:
        print_json(told)
    else:
        print_table(in_rows(told))
        if told["jobs"]:
            print_table(job_rows(told["jobs"]), header=("step", "of", "state", "attempt", "why"))


@app.command()
def tag(
    address: Address,
    run: RunName,
    tags: Annotated[list[str], typer.Argument(metavar="TAG...", help="Tags.", show_default=False)],
    remove: Annotated[
        bool, typer.Option("--remove", metavar="", help="Remove the tags instead of adding them.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Add tags to a run, or remove them."""
    with open_campaign(address) as campaign:
        found = campaign.tag(run, remove=tags) if remove else campaign.tag(run, add=tags)
    if as_json:
        print_json({"run": run, "tags": found})
    else:
        output.print(f"{run}: {', '.join(found) or 'no tags'}", markup=False, soft_wrap=True)


@app.command()
def note(
    address: Address,
    run: RunName,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text of the note.", show_default=False)],
    author: Annotated[str, typer.Option("--author", help="Who wrote it; by default your account.")] = "",
    as_json: AsJson = False,
) -> None:
    """Add a note to a run."""
    with open_campaign(address) as campaign:
        campaign.note(run, text, author or _account())
        notes = campaign.run(run)["notes"]
    if as_json:
        print_json({"run": run, "notes": notes})
    else:
        output.print(f"{run}: {counted(len(notes), 'note')}", markup=False, soft_wrap=True)


app.command()(rule)


@app.command()
def work(
    address: Address,
    once: Annotated[
        bool, typer.Option("--once", metavar="", help="Exit when there is nothing left to do.")
    ] = False,
    at_once: Annotated[
        int, typer.Option("--at-once", help="How many steps to run at the same time.", min=1)
    ] = 1,
    every_s: Annotated[
        float, typer.Option("--every-s", help="Seconds between checks for new runs.", min=0.1)
    ] = 2.0,
    again: Annotated[bool, typer.Option("--again", metavar="", help="Start failed steps again.")] = False,
    as_json: AsJson = False,
) -> None:
    """Watch for new runs and do what the rules say; stop it at any time: no step is done twice."""
    from orienteer.campaign import jobs
    from orienteer.campaign.worker import Worker

    def tell(words: str) -> None:
        messages.print(escape(words), soft_wrap=True)

    with open_campaign(address) as campaign:
        if again:
            campaign.database.write(jobs.retry_failed)
        with telling_when_stopped(
            "Stopped; steps that are running continue.", "The same command watches them again."
        ):
            Worker(campaign, at_once, tell).work(once, every_s)
        told = campaign.overview()["jobs"]
    if as_json:
        print_json({"jobs": told})
    elif once:
        failed = sorted({each["run"] for each in told if each["status"] == "failed"})
        why = (
            f" Steps of {', '.join(failed)} have failed: orienteer campaign show says why." if failed else ""
        )
        tell(f"Nothing is left to do.{why}")


@app.command()
def export(
    address: Address,
    out: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="For runs: .json with everything, .csv as a table. For shots: .csv, .h5 or .npz.",
            show_default=False,
        ),
    ],
    run: Annotated[
        str, typer.Option("--run", metavar="RUN", help="Write the shots of this run; by default all runs.")
    ] = "",
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Write the runs of a campaign, or the shots of a run, to a file."""
    from orienteer.campaign.exporting import export_runs, export_shots

    refuse_existing(out, overwrite)
    with telling_what_is_written(out), open_campaign(address) as campaign:
        n = export_shots(campaign, run, out) if run else export_runs(campaign, out)
    told: dict[str, Any] = {"file": str(out), "shots" if run else "runs": n}
    if as_json:
        print_json(told)
    else:
        output.print(f"{out}: {counted(n, 'shot' if run else 'run')}", markup=False, soft_wrap=True)


def _sums(campaign: "Campaign") -> dict[str, Any]:
    found = campaign.overview()
    return {name: found[name] for name in ("n_runs", "n_shots", "n_hits")} | {
        "samples": len(found["samples"])
    }


def _account() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # an account without a name
        return ""
