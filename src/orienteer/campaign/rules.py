"""Rule: the steps for each new run of a sample, such as hits, then reconstruct, then report."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import Field
from sqlalchemy import Connection, delete, select

from orienteer.campaign.address import CampaignError
from orienteer.campaign.database import insert_once
from orienteer.campaign.names import checked_name, printable
from orienteer.campaign.runs import at, moment
from orienteer.campaign.schema import job, rule
from orienteer.compute.nearest import meant_instead
from orienteer.errors import FileError, SettingsError
from orienteer.settings.section import Section

# Steps given by a name alone; any other step is a command of orienteer with its arguments.
STEPS = ("hits", "reconstruct", "phase", "validate", "report")
# Placeholders that the arguments of a step may contain.
PLACES = ("data", "hits", "folder", "name", "sample")


class Rule(Section):
    """What is done with each new run, and where.

    A step is a name out of STEPS, or a list of arguments for ``orienteer``, in which ``{data}``, ``{hits}``,
    ``{folder}``, ``{name}`` and ``{sample}`` are replaced by those of the run.  No shell is involved.
    """

    out: str = Field(min_length=1, description="Folder in which each run gets a folder of its name.")
    steps: list[str | list[str]] = Field(min_length=1, description="What is done, in this order.")
    sample: str = Field(default="", description="Sample to which the rule applies; empty: all.")
    watch: str = Field(default="", description="Files that automatically become runs, such as raw/*.h5.")
    settings: str = Field(default="", description="Settings file of the reconstruction.")
    where: Literal["local", "slurm"] = Field(
        default="local", description="Where to reconstruct: on the worker's machine, or as a batch job."
    )
    settle_s: float = Field(
        default=10.0, ge=0, description="A file is complete when it has not changed for this long."
    )

    def checked(self) -> Rule:
        """The rule with absolute paths, as it is stored; raises an error if it could never be carried out."""
        for step in self.steps:
            _check_step(step)
        if self.where == "slurm" and not self.settings:
            raise SettingsError(
                "a rule that reconstructs through Slurm needs a settings file.",
                "Write what to request from Slurm under [cluster] in a file, and give that file as settings.",
            )
        if self.settings and not Path(self.settings).is_file():
            raise FileError(
                self.settings, "no such settings file.", meant_instead(self.settings, "Check the path.")
            )
        if self.sample:
            checked_name(self.sample, "sample")
        paths = {name: getattr(self, name) for name in ("out", "watch", "settings")}
        whole = {name: str(Path(path).absolute()) for name, path in paths.items() if path}
        return Rule(**{**self.model_dump(), **whole})


def read_rules(path: Path) -> dict[str, Rule]:
    """The rules of a TOML file by name, one table ``[rule.NAME]`` each."""
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(path, f"cannot be read ({error.strerror}).", "Check the path.") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(
            f"{path}: not valid TOML: {error}.", "Correct the line that it names; texts need quotes."
        ) from None
    tables = tree.get("rule")
    if set(tree) != {"rule"} or not isinstance(tables, dict) or not tables:
        raise SettingsError(
            f"{path}: a file of rules has tables [rule.NAME] and nothing else.",
            "Put every key under a line such as [rule.routine].",
        )
    if wrong := [name for name, table in tables.items() if not isinstance(table, dict)]:
        raise SettingsError(f"{path}: '{wrong[0]}' is no rule.", "Write a table: [rule.NAME]")
    return {name: Rule(**table) for name, table in tables.items()}


def put_rule(connection: Connection, name: str, made: Rule, also_old: bool) -> None:
    """Add a rule, or change the one of this name for future runs.

    also_old : whether the rule also applies to runs that exist already.
    """
    definition = json.dumps(made.model_dump())
    since = 0.0 if also_old else moment(connection)
    values = {"name": checked_name(name, "rule"), "definition": definition, "since_s": since}
    if not insert_once(connection, rule, values):
        changed = {"definition": definition, "is_on": 1, **({"since_s": 0.0} if also_old else {})}
        connection.execute(rule.update().where(rule.c.name == name).values(**changed))


def switch_rule(connection: Connection, name: str, is_on: bool) -> None:
    """Switch a rule off or on."""
    _found(connection.execute(rule.update().where(rule.c.name == name).values(is_on=int(is_on))), name)


def remove_rule(connection: Connection, name: str) -> None:
    """Remove a rule and its jobs; files that the jobs have written stay."""
    busy = select(job.c.id).join(rule, job.c.rule_id == rule.c.id)
    busy = busy.where(rule.c.name == name, job.c.status.in_(("working", "queued")))
    if connection.execute(busy).first() is not None:
        raise CampaignError(
            f"a step of the rule '{printable(name)}' is still running.",
            "Switch the rule off (--off) and wait for the step to end.",
        )
    _found(connection.execute(delete(rule).where(rule.c.name == name)), name)


def list_rules(connection: Connection) -> list[dict[str, Any]]:
    """All rules by name."""
    return [
        {
            "name": row.name,
            "is_on": bool(row.is_on),
            "since": at(row.since_s) if row.since_s else None,
            **json.loads(row.definition),
        }
        for row in connection.execute(select(rule).order_by(rule.c.name))
    ]


def _found(changed: Any, name: str) -> None:
    if changed.rowcount == 0:
        raise CampaignError(
            f"the campaign has no rule '{printable(name)[:60]}'.", "See them: orienteer campaign rule"
        )


def _check_step(step: str | list[str]) -> None:
    if isinstance(step, str):
        if step not in STEPS:
            raise SettingsError(
                f"'{printable(step)[:60]}' is no step.",
                f'A step is one of {", ".join(STEPS)}, or a list of arguments: ["convert", "{{data}}", ...]',
            )
        return
    if not step or not re.fullmatch(r"[a-z]+", step[0]):
        raise SettingsError(
            "a step that is a list begins with a command of orienteer, such as convert.",
            'For example: ["convert", "{data}", "{folder}/hits.cxi", "--overwrite"]',
        )
    for place in re.findall(r"\{(\w*)\}", " ".join(step)):
        if place not in PLACES:
            raise SettingsError(
                f"a step uses {{{place}}}, which is not a known placeholder.",
                f"Use one of {', '.join(f'{{{name}}}' for name in PLACES)}.",
            )
