"""The steps of a rule for one run, as lists of arguments of ``orienteer``; no shell is involved."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orienteer.campaign.rules import Rule

TABLE = "shots.npz"


@dataclass(frozen=True)
class Step:
    """A step that is to be done.

    arguments : of ``orienteer``; folder : where its log and its state are kept.
    product : the run directory or table of shots that it makes, which is read after the step; empty: none.
    """

    name: str
    arguments: tuple[str, ...]
    folder: str
    product: str = ""


def steps_of(rule: Rule, run: Mapping[str, Any]) -> list[Step]:
    """The steps that a rule asks for a run.

    run : name, sample, data and folder, as the campaign has them.
    """
    folder = Path(rule.out) / run["name"]
    finds_hits = "hits" in rule.steps
    places = {
        "data": _as_argument(run["data"] or run["folder"]),
        "hits": str(folder / "hits.h5") if finds_hits else _as_argument(run["folder"] or run["data"]),
        "folder": str(folder),
        "name": str(run["name"]),
        "sample": str(run["sample"] or ""),
    }
    made = folder / "reconstruction"
    steps = []
    for number, asked in enumerate(rule.steps, start=1):
        name = asked if isinstance(asked, str) else asked[0]
        if isinstance(asked, str):
            arguments = _named(asked, rule, made, places)
        else:
            arguments = [_filled(argument, places) for argument in asked]
        own = str(folder / "steps" / f"{number:02d}_{name}")
        product = "" if not isinstance(asked, str) else str(folder / TABLE if name == "hits" else made)
        steps.append(Step(name, tuple(arguments), own, product))
    return steps


def _named(name: str, rule: Rule, made: Path, places: Mapping[str, str]) -> list[str]:
    """The arguments of a step given by name; each of these commands can be repeated after it was cut off."""
    settings = ["--settings", rule.settings] if rule.settings else []
    if name == "hits":
        table = str(Path(places["folder"]) / TABLE)
        made_here = ["--out", places["hits"], "--table", table, "--overwrite"]
        return ["hits", places["data"], *made_here, *settings, "--json"]
    if name != "reconstruct":
        return [name, str(made), "--json"]
    if rule.where == "slurm":
        texts = {"run.data": places["hits"], "run.out": str(made)}
        sets = [part for key, text in texts.items() for part in ("--set", f"{key}={json.dumps(text)}")]
        return ["submit", rule.settings, *sets, "--yes", "--json"]
    return ["reconstruct", places["hits"], "--out", str(made), *settings, "--json"]


def _filled(argument: str, places: Mapping[str, str]) -> str:
    """Replace placeholders in one pass: inserted text is not searched again."""
    return re.sub(r"\{(\w+)\}", lambda match: places.get(match[1], match[0]), argument)


def _as_argument(path: str) -> str:
    """The path, changed so that no command takes it for an option."""
    return f"./{path}" if path.startswith("-") else path
