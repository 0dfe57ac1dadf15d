"""``orienteer campaign rule``: what is done with each new run of a sample."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from orienteer.cli.campaign_options import Address, open_campaign
from orienteer.cli.campaign_words import rule_rows
from orienteer.cli.console import output, print_json, print_table
from orienteer.cli.options import AsJson

_HEADER = ("rule", "is", "sample", "steps", "where", "watches", "writes to")


def rule(
    address: Address,
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="Name of the rule; without it, list all.", show_default=False),
    ] = "",
    steps: Annotated[
        str, typer.Option("--steps", metavar="A,B,...", help="hits, reconstruct, phase, validate, report.")
    ] = "",
    out: Annotated[
        str,
        typer.Option(
            "--out", metavar="FOLDER", help="Folder for results; each run gets a folder of its name in it."
        ),
    ] = "",
    sample: Annotated[str, typer.Option("--sample", help="Only runs of this sample; by default all.")] = "",
    watch: Annotated[
        str, typer.Option("--watch", metavar="PATTERN", help="Files that become runs, such as 'raw/*.h5'.")
    ] = "",
    settings: Annotated[
        str, typer.Option("--settings", metavar="FILE", help="Settings of the reconstruction.")
    ] = "",
    where: Annotated[
        Literal["local", "slurm"],
        typer.Option("--where", help="Reconstruct on this machine or as a batch job."),
    ] = "local",
    settle_s: Annotated[
        float,
        typer.Option(
            "--settle-s", help="Treat a file as complete after this many seconds without a change.", min=0
        ),
    ] = 10.0,
    file: Annotated[
        Path | None,
        typer.Option("--file", metavar="FILE", help="Read rules from TOML, one table rule.NAME each."),
    ] = None,
    also_old: Annotated[
        bool, typer.Option("--also-old", metavar="", help="Also apply it to runs added before.")
    ] = False,
    off: Annotated[bool, typer.Option("--off", metavar="", help="Switch the rule off.")] = False,
    on: Annotated[bool, typer.Option("--on", metavar="", help="Switch the rule on again.")] = False,
    remove: Annotated[
        bool, typer.Option("--remove", metavar="", help="Delete the rule and its jobs.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make, change, switch or list rules; a worker carries them out."""
    from orienteer.campaign.rules import Rule, list_rules, put_rule, read_rules, remove_rule, switch_rule
    from orienteer.errors import SettingsError

    if (off or on or remove or steps or out) and not name:
        raise SettingsError("no rule is named.", "Give its name: orienteer campaign rule CAMPAIGN NAME ...")
    made: dict[str, Any] = {}
    if file is not None:
        made = {each: found.checked() for each, found in read_rules(file).items()}
    elif steps or out:
        if not (steps and out):
            missing = "--out, the folder for its results" if steps else "--steps, the work to do"
            raise SettingsError(
                f"a rule needs {missing}.", "For example: --steps hits,reconstruct --out processed"
            )
        asked = [step.strip() for step in steps.split(",") if step.strip()]
        found = Rule(
            out=out,
            steps=asked,
            sample=sample,
            watch=watch,
            settings=settings,
            where=where,
            settle_s=settle_s,
        )
        made = {name: found.checked()}
    elif name and not (off or on or remove):
        raise SettingsError(
            "the rule has no steps.", "Give --steps and --out, or a file of rules with --file."
        )
    with open_campaign(address) as campaign:
        database = campaign.database
        for each, checked in made.items():
            database.write(lambda c, each=each, checked=checked: put_rule(c, each, checked, also_old))  # type: ignore[misc]
        if remove:
            database.write(lambda connection: remove_rule(connection, name))
        elif off or on:
            database.write(lambda connection: switch_rule(connection, name, on))
        rules = database.read(list_rules)
    if as_json:
        print_json({"rules": rules})
    elif rules:
        print_table(rule_rows(rules), header=_HEADER)
    else:
        output.print("There are no rules.")
