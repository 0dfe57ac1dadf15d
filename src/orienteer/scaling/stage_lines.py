"""The stages of every rank of a run, read from the logs of the ranks."""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from orienteer.compute.nearest import meant_instead
from orienteer.compute.reading import reading
from orienteer.errors import FileError

_NAME = re.compile(r"events_rank_(\d{3,})\.jsonl")


@dataclass(frozen=True)
class StageLine:
    """One stage of one rank.

    start : s since 1970; seconds : duration, s; own_seconds : the same without the stages inside it.
    depth : number of stages that enclose it.
    frames, first : number of frames that it processed, and position of the first; 0 and -1: none.
    items : pieces of work of these frames that the rank has claimed, if several ranks share them; else 0.
    """

    iteration: int
    stage: str
    start: float
    seconds: float
    own_seconds: float
    depth: int = 0
    frames: int = 0
    first: int = -1
    items: int = 0

    @property
    def amount(self) -> float:
        """Amount of work: frames, times the pieces of work if ranks share the frames."""
        return float(self.frames * (self.items or 1))

    @property
    def end(self) -> float:
        """When it ended, s since 1970."""
        return self.start + self.seconds


@dataclass(frozen=True)
class RankLines:
    """What one rank did, in order of time.

    begins : when its processes began, s since 1970; several if the run was resumed.
    """

    rank: int
    host: str
    begins: tuple[float, ...]
    lines: tuple[StageLine, ...] = field(default=())

    @property
    def seconds(self) -> float:
        """Time in which the rank existed, s: for each of its processes, from the first to the last stage."""
        found = 0.0
        for first, last in pairwise((-math.inf, *self.begins[1:], math.inf)):
            own = [line for line in self.lines if first <= line.start < last]
            if own:
                found += max(line.end for line in own) - own[0].start
        return found


def read_stage_lines(run: Path) -> list[RankLines]:
    """The stages of every rank in the directory of a run, by rank."""
    logs = {int(match[1]): path for path in _files(run) if (match := _NAME.fullmatch(path.name))}
    if not logs:
        raise FileError(
            run,
            "holds no log of stages (events_rank_NNN.jsonl).",
            "Give the folder of a reconstruction that has done an iteration.",
        )
    return [_read(rank, path) for rank, path in sorted(logs.items())]


def _files(run: Path) -> Iterator[Path]:
    if not run.is_dir():
        hint = meant_instead(run, "Give the folder that a reconstruction has made.")
        raise FileError(run, "there is no such folder.", hint)
    yield from run.iterdir()


def _read(rank: int, path: Path) -> RankLines:
    with reading(path, "log of stages"):
        content = path.read_bytes()
    told = [line for line in map(_parsed, content.splitlines(keepends=True)) if line is not None]
    begins = [line for line in told if line["stage"] == "begin"]
    stages = [line for line in told if line["stage"] != "begin"]
    host = str(begins[-1].get("host", "")) if begins else ""
    return RankLines(rank, host, tuple(line["start"] for line in begins), tuple(nested(stages)))


def _parsed(line: bytes) -> dict[str, Any] | None:
    """The content of a line; None if it was cut short or is not a stage."""
    try:
        told = json.loads(line) if line.endswith(b"\n") else None
        if not isinstance(told, dict) or not isinstance(told["stage"], str):
            return None
        return {**told, **{key: float(told[key]) for key in ("start", "seconds")}}
    except (ValueError, TypeError, KeyError):
        return None


def nested(stages: list[dict[str, Any]]) -> list[StageLine]:
    """Stages in order of time, each with the time that it did not spend in stages inside it.

    Stages are logged when they end, so in the log those inside another one come before it.
    """
    ordered = sorted(stages, key=lambda line: (line["start"], -line["seconds"]))
    open_at: list[int] = []
    inside = [0.0] * len(ordered)
    depth = [0] * len(ordered)
    for number, line in enumerate(ordered):
        # The clock is read once per stage: ends within a tenth of a millisecond count as the same moment.
        while open_at and _end(ordered[open_at[-1]]) < max(line["start"] + 1e-5, _end(line) - 1e-4):
            open_at.pop()
        if open_at:
            inside[open_at[-1]] += line["seconds"]
        depth[number] = len(open_at)
        open_at.append(number)
    return [
        StageLine(
            int(line.get("iteration", 0)), line["stage"], line["start"], line["seconds"],
            max(0.0, line["seconds"] - within), level,
            int(line.get("frames", 0)), int(line.get("first", -1)), int(line.get("items", 0)),
        )
        for line, within, level in zip(ordered, inside, depth, strict=True)
    ]  # fmt: skip


def _end(line: dict[str, Any]) -> float:
    return float(line["start"] + line["seconds"])
