"""One line of the list of runs, from a folder whose files are not trusted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from orienteer.compute.words import counted
from orienteer.dashboard.roots import Roots
from orienteer.errors import FileError, OrienteerError
from orienteer.report.plain_values import as_count, as_number, as_texts, as_words, at
from orienteer.run import files
from orienteer.run.standing import Standing, read_standing, working_host
from orienteer.source.frame_tags import FRAME_TAGS

RUN, LIVE, MARKS = files.DESCRIPTION, "live.json", "dashboard.json"
VALIDATION = f"{files.VALIDATION}/{files.VALIDATION_DESCRIPTION}"
DAMAGED = "damaged"
_LONGEST_WORDS = 400
_LONGEST_NAME, _LONGEST_NOTE, _MOST_TAGS = 200, 10_000, 100


def read_json(roots: Roots, path: Path) -> dict[str, Any]:
    """The JSON object in a small file; empty if there is no file, FileError if it is damaged."""
    if not path.exists():
        return {}
    content = roots.read(path)
    try:
        told = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise FileError(path, "is damaged or too large.", "Copy the folder of the run again.") from error
    if not isinstance(told, dict):
        raise FileError(path, "does not hold a JSON object.", "Copy the folder of the run again.")
    return told


def read_row(roots: Roots, path: Path, is_live: bool) -> dict[str, Any]:
    """The row of a run in the list; if its files are damaged, the row says so."""
    try:
        row = _live_row(roots, path) if is_live else _run_row(roots, path)
    except OrienteerError as error:
        row = _damaged(error.message)
    except Exception as error:  # no single folder may break the whole list
        row = _damaged(f"its files cannot be understood ({type(error).__name__}).")
    return {**row, **_marks(roots, path), "frame_tags": _frame_tags(roots, path)}


def _damaged(why: str) -> dict[str, Any]:
    return {
        "kind": "", "status": DAMAGED, "words": why[:_LONGEST_WORDS], "iteration": None, "resolution_A": None,
        "agrees_to_A": None, "n_frames": None, "hit_rate": None,
    }  # fmt: skip


def _run_row(roots: Roots, path: Path) -> dict[str, Any]:
    described = read_json(roots, path / RUN)
    for name in (files.EVENTS, "lock"):
        if (path / name).exists():
            roots.file(path / name)
    standing = read_standing(path)
    is_known = standing.state != "new"
    return {
        "kind": as_words(described.get("method"))[:_LONGEST_NAME],
        "status": standing.state if is_known else DAMAGED,
        "words": in_words(standing)[:_LONGEST_WORDS],
        "iteration": as_count(standing.iteration),
        "resolution_A": _validated_A(roots, path, described),
        "agrees_to_A": as_number(standing.agrees_to_A),
        "n_frames": as_count(at(described, "input", "frames")),
        "hit_rate": None,
    }


def _validated_A(roots: Roots, path: Path, described: dict[str, Any]) -> float | None:
    """The resolution that a validation of this very run has shown; None if there is none."""
    try:
        said = read_json(roots, path / VALIDATION)
    except OrienteerError:
        return None
    return as_number(said.get("resolution_A")) if said.get("run_id") == described.get("run_id") else None


def _live_row(roots: Roots, path: Path) -> dict[str, Any]:
    described = read_json(roots, path / LIVE)
    counters = read_json(roots, path / "counters.json")
    if (path / "lock").exists():
        roots.file(path / "lock")
    processed, hits = as_count(counters.get("processed")), as_count(counters.get("hits"))
    state = (
        "working"
        if working_host(path)
        else ("finished" if counters.get("is_finished") is True else "stopped")
    )
    words = f"{counted(processed or 0, 'shot')} processed"
    if hits is not None:
        words += f", {hits:,} of them hits"
    source = as_words(described.get("source"))
    return {
        "kind": "live",
        "status": state,
        "words": f"{words}{', from ' + source if source else ''}."[:_LONGEST_WORDS],
        "iteration": None,
        "resolution_A": None,
        "agrees_to_A": None,
        "n_frames": processed,
        "hit_rate": hits / processed if processed and hits is not None else None,
    }


def _marks(roots: Roots, path: Path) -> dict[str, Any]:
    """Tags, sample and note that users have entered on the page."""
    try:
        marks = read_json(roots, path / MARKS)
    except OrienteerError:
        marks = {}
    return {
        "tags": [text[:_LONGEST_NAME] for text in as_texts(marks.get("tags"))[:_MOST_TAGS]],
        "sample": as_words(marks.get("sample"))[:_LONGEST_NAME],
        "note": as_words(marks.get("note"))[:_LONGEST_NOTE],
    }


def _frame_tags(roots: Roots, path: Path) -> list[str]:
    """Tags of frames of the run, by which a search finds it, too."""
    try:
        tags = read_json(roots, path / FRAME_TAGS).get("tags")
    except OrienteerError:
        return []
    return [str(tag)[:_LONGEST_NAME] for tag in tags][:_MOST_TAGS] if isinstance(tags, dict) else []


def in_words(standing: Standing) -> str:
    """The state of a run, in one sentence."""
    where = (
        f"after {counted(standing.iteration, 'iteration')}"
        if standing.iteration
        else "before its first iteration"
    )
    if standing.stage and standing.n_stages:
        where += f", stage {standing.stage} of {standing.n_stages}"
    if standing.agrees_to_A:
        where += f", halves agree to {standing.agrees_to_A:.3g} Å"
    if standing.state == "working":
        left = standing.seconds_left
        end = f"; about {_minutes(left)} left" if left else ""
        return f"Works on {standing.host}, {where}{end}."
    if standing.state == "finished":
        return f"Finished {where}. {standing.reason}".strip()
    if standing.state == "failed":
        return f"Failed {where}: {standing.reason or 'the reason is not known'}"
    return f"Stopped {where}; it can go on." if standing.state == "stopped" else "Its description is missing."


def _minutes(seconds: float) -> str:
    """A duration in words, no more precise than it can be predicted.

    >>> [_minutes(s) for s in (20, 600, 10_000)]
    ['20 s', '10 min', '2.8 h']
    """
    if seconds < 100:
        return f"{seconds:.2g} s"
    return f"{seconds / 60:.2g} min" if seconds < 5400 else f"{seconds / 3600:.2g} h"
