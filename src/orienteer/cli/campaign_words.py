"""Runs, jobs and rules of a campaign as rows for people."""

from collections.abc import Iterable, Mapping
from typing import Any

from orienteer.compute.words import counted

_SHOWN = ("name", "sample", "kind", "data", "folder", "created", "modified")


def sums(told: Mapping[str, Any]) -> str:
    """The numbers of runs, shots and hits of a campaign, in words."""
    return ", ".join(counted(told[f"n_{what}s"], what) for what in ("run", "shot", "hit"))


def run_rows(runs: Iterable[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """A row per run."""
    return [
        (
            run["name"] + (" (open)" if run["is_open"] else ""),
            run["sample"],
            f"{run['n_shots']:,}" if run["n_shots"] else "",
            f"{run['n_hits']:,}" if run["n_shots"] else "",
            ", ".join(run["tags"]),
            _when(run["modified"]),
        )
        for run in runs
    ]


def in_rows(run: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Everything about a run, a row per fact; unknown facts are left out."""
    rows = [(name, str(run[name])) for name in _SHOWN if run[name]]
    if run["n_shots"]:
        share = run["n_hits"] / run["n_shots"]
        rows.append(("shots", f"{run['n_shots']:,}, {run['n_hits']:,} of them hits ({share:.1%})"))
    for name, column in run["columns"].items():
        rows.append((name, f"{column['least']:.4g} to {column['most']:.4g}, mean {column['mean']:.4g}"))
    rows += [("tags", ", ".join(run["tags"]))] if run["tags"] else []
    rows += [(f"frames '{tag}'", f"{n:,}") for tag, n in run["frame_tags"].items()]
    rows += [(name, _value(value)) for name, value in run["results"].items() if value not in (None, "")]
    rows += list(run["files"].items())
    for note in run["notes"]:
        rows.append((_when(note["time"]), f"{note['text']} ({note['author'] or 'no name'})"))
    return rows


def job_rows(jobs: Iterable[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """A row per job."""
    return [
        (job["step"], job["run"], job["status"], str(job["attempt"] or ""), job["reason"]) for job in jobs
    ]


def rule_rows(rules: Iterable[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """A row per rule."""
    return [
        (
            rule["name"],
            "on" if rule["is_on"] else "off",
            rule["sample"] or "all",
            ", then ".join(step if isinstance(step, str) else " ".join(step) for step in rule["steps"]),
            rule["where"],
            rule["watch"],
            rule["out"],
        )
        for rule in rules
    ]


def _when(time: str) -> str:
    return time[:16].replace("T", " ")


def _value(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
