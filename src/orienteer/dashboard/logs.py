"""The log of a run, piece by piece: the output of its job, or otherwise its steps in words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from orienteer.dashboard.refusal import Refused
from orienteer.dashboard.roots import Roots
from orienteer.report.plain_values import as_number
from orienteer.run.files import EVENTS

PRINTED = "dashboard.log"
PIECE_BYTES = 64 << 10
_TOLD = ("log_likelihood", "agrees_to_A", "sentinel_agreement_deg", "perplexity", "seconds")


def read_log(roots: Roots, run: Path, after: int, name: str) -> dict[str, Any]:
    """A piece of the log that was written last: its text, its name, and the byte at which to continue.

    after : the byte up to which the page has it; 0: from the start, but only the end of a long log.
    name : of the log that the page has; if another log is newer, it is read from its start.
    """
    logs = [path for path in _logs(run) if roots.hold(path)]
    if not logs:
        raise Refused(404, "The run has no log yet.")
    path = max(logs, key=lambda log: (log.name != EVENTS, log.stat().st_mtime_ns))
    shown = path.relative_to(run).as_posix()
    n_bytes = path.stat().st_size
    begin = after if name == shown and after <= n_bytes else 0
    is_cut = begin == 0 and n_bytes > PIECE_BYTES
    begin = n_bytes - PIECE_BYTES if is_cut else begin
    content = roots.read(path, PIECE_BYTES, begin)
    if is_cut:
        content = content[content.find(b"\n") + 1 :]
    end = n_bytes if is_cut else begin + len(content)
    if path.name == EVENTS:
        # Normally only whole lines are given.  A line as long as a piece is not ours, and is given in parts.
        whole = content.rfind(b"\n") + 1 or len(content) * (len(content) >= PIECE_BYTES)
        end -= len(content) - whole
        return {"text": _in_words(content[:whole]), "next": end, "file": shown}
    return {"text": content.decode("utf-8", "replace"), "next": end, "file": shown}


def _logs(run: Path) -> list[Path]:
    """The log of events, and files with printed output."""
    found = [run / EVENTS, run / PRINTED, *sorted((run / "slurm").glob("*.log"))]
    return [path for path in found if path.is_file()]


def _in_words(content: bytes) -> str:
    lines = []
    for line in content.splitlines():
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict):
            lines.append(_line(event))
    return "".join(f"{line}\n" for line in lines)


def _line(event: dict[str, Any]) -> str:
    """An event in one line.

    >>> _line({"event": "step", "time": "2026-01-02T03:04:05.678", "iteration": 3, "seconds": 1.25})
    '2026-01-02 03:04:05  step 3  seconds 1.25'
    """
    time = str(event.get("time", ""))[:19].replace("T", " ")
    said = [f"{time}  {str(event.get('event', ''))[:40]} {event.get('iteration', '')}".rstrip()]
    if event.get("event") == "step":
        numbers = [(name, as_number(event.get(name))) for name in _TOLD]
        said += [f"{name.replace('_', ' ')} {value:.4g}" for name, value in numbers if value is not None]
    said += [str(event[name])[:500] for name in ("reason", "note") if event.get(name)]
    return "  ".join(said)
