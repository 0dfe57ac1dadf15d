"""Findings in the weather of a run, in words: slow ranks, stalls, costly frames, waiting."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from orienteer.compute.words import counted
from orienteer.scaling.stage_lines import StageLine
from orienteer.scaling.weather import Weather

Kind: TypeAlias = Literal["slow rank", "stall", "slow reading", "pause", "bad frames", "waiting", "saving"]
# A rank is slow below this share of the usual rate; changes of the clock on a shared machine stay above it.
_SLOW = 0.7
# A batch costs too much from this multiple of the usual time on; differences in fluence cause less.
_DEAR = 2.5
# Reading is a stall if it takes more than this many seconds, and more than this share of the time of a batch.
_STALL_S, _STALL_SHARE = 0.5, 0.5
# Reading, waiting and saving are reported above these shares of the time.
_MUCH_READING, _MUCH_WAITING, _MUCH_SAVING = 0.1, 0.15, 0.1
# Show this many findings of a kind; only count the others.
_TOLD = 3


@dataclass(frozen=True)
class Finding:
    """One thing that costs time.

    text : one sentence for people; start : s since the beginning of the run, if it happened only once.
    lost_s : cost, roughly, in seconds of one rank.
    """

    kind: Kind
    text: str
    ranks: tuple[int, ...] = ()
    iteration: int | None = None
    start: float | None = None
    lost_s: float = 0.0


def find(weather: Weather) -> list[Finding]:
    """All findings; within a kind, the worst first."""
    dear, pauses = _dear_batches(weather)
    return [*_slow_ranks(weather), *_stalls(weather), *dear, *pauses, *_shares(weather)]


def _slow_ranks(weather: Weather) -> list[Finding]:
    relative = weather.relative_rate
    slow = [row for row in range(len(relative)) if relative[row] < _SLOW]
    hosts: dict[str, list[int]] = defaultdict(list)
    for row, rank in enumerate(weather.ranks):
        hosts[rank.host].append(row)
    found, told = [], set()
    for host, rows in hosts.items():
        if len(hosts) > 1 and len(rows) > 1 and set(rows) <= set(slow):
            ranks = tuple(weather.ranks[row].rank for row in rows)
            share = float(np.mean(relative[rows]))
            text = f"Node {host} is slow: all of its {len(rows)} ranks work at {share:.0%} of the usual rate."
            found.append(Finding("slow rank", text, ranks, lost_s=_lost(weather, rows)))
            told.update(rows)
    for row in sorted(set(slow) - told, key=lambda row: relative[row]):
        rank = weather.ranks[row]
        where = f" on {rank.host}" if rank.host else ""
        text = f"Rank {rank.rank}{where} is slow: it works at {relative[row]:.0%} of the usual rate."
        found.append(Finding("slow rank", text, (rank.rank,), lost_s=_lost(weather, [row])))
    return found


def _lost(weather: Weather, rows: list[int]) -> float:
    """Seconds that these ranks took longer than at the usual rate."""
    lost = 0.0
    for row, line in weather.batches:
        if row in rows:
            usual = weather.usual_rate[line.iteration]
            lost += max(0.0, line.own_seconds - line.amount / usual)
    return lost


def _stalls(weather: Weather) -> list[Finding]:
    """Times at which ranks waited long for frames; simultaneous waits of several ranks are one finding."""
    usual: dict[int, list[float]] = defaultdict(list)
    for _, line in weather.batches:
        usual[line.iteration].append(line.own_seconds)
    long: list[tuple[int, StageLine]] = []
    for row, rank in enumerate(weather.ranks):
        for line in rank.lines:
            if line.stage != "read":
                continue
            batch = float(np.median(usual[line.iteration])) if usual[line.iteration] else 0.0
            if line.seconds > max(_STALL_S, _STALL_SHARE * batch):
                long.append((row, line))
    long.sort(key=lambda each: each[1].start)
    groups: list[list[tuple[int, StageLine]]] = []
    for each in long:
        if groups and each[1].start < max(line.end for _, line in groups[-1]):
            groups[-1].append(each)
        else:
            groups.append([each])
    # Reading that is always slow is reported once, by its share of the time.
    rare = [group for group in groups if len(groups) <= max(3, len(weather.iterations) // 2)]
    found = []
    for group in rare:
        rows = sorted({row for row, _ in group})
        start = min(line.start for _, line in group) - weather.start
        longest = max(line.seconds for _, line in group)
        found.append(
            Finding(
                "stall",
                f"{_who(weather, rows)} stood still for {longest:.2g} s, {start:.3g} s after the beginning "
                f"(iteration {group[0][1].iteration}): their frames had not been read yet.",
                tuple(weather.ranks[row].rank for row in rows),
                group[0][1].iteration,
                start,
                sum(line.seconds for _, line in group),
            )
        )
    return _worst(found)


def _dear_batches(weather: Weather) -> tuple[list[Finding], list[Finding]]:
    """Batches that are costly in most iterations, and batches that were so once: their rank has paused."""
    times: dict[tuple[int, int], list[float]] = defaultdict(list)
    for row, line in weather.batches:
        times[row, line.iteration].append(line.own_seconds)
    # All batches have the same size, except the last, which is smaller.
    usual = {key: float(np.median(each)) for key, each in times.items() if len(each) >= 3}
    seen: dict[tuple[int, int], list[tuple[float, int, StageLine]]] = defaultdict(list)
    for row, line in weather.batches:
        if (row, line.iteration) in usual:
            ratio = line.own_seconds / max(usual[row, line.iteration], 1e-9)
            seen[line.first, line.frames].append((ratio, row, line))
    dear, pauses = [], []
    for (first, frames), batches in seen.items():
        many = [each for each in batches if each[0] >= _DEAR]
        if not many:
            continue
        lost = sum(line.own_seconds * (1 - 1 / ratio) for ratio, _, line in many)
        if lost < 0.1:
            continue
        if len(many) >= 2 and len(many) > len(batches) / 2:
            ratio = float(np.median([each[0] for each in many]))
            dear.append(
                Finding(
                    "bad frames",
                    f"The {frames} frames of the batch that begins with frame {first} cost {ratio:.1f} times "
                    f"as much time as others, in {len(many)} of {counted(len(batches), 'iteration')}: look "
                    "at them.",
                    tuple(sorted({weather.ranks[row].rank for _, row, _ in many})),
                    lost_s=lost,
                )
            )
            continue
        for ratio, row, line in many:
            start = line.start - weather.start
            pauses.append(
                Finding(
                    "pause",
                    f"{_who(weather, [row])} took {ratio:.1f} times as long as usual for a batch, "
                    f"{start:.3g} s after the beginning (iteration {line.iteration}): something else kept "
                    f"it busy.",
                    (weather.ranks[row].rank,),
                    line.iteration,
                    start,
                    line.own_seconds * (1 - 1 / ratio),
                )
            )
    return _worst(dear), _worst(pauses)


def _shares(weather: Weather) -> list[Finding]:
    found = []
    words: tuple[tuple[Kind, str, float, str], ...] = (
        ("slow reading", "read", _MUCH_READING, "waiting for frames: the disk or the network is slow"),
        ("waiting", "wait", _MUCH_WAITING, "waiting for other ranks"),
        ("saving", "save", _MUCH_SAVING, "writing checkpoints and results"),
    )
    for kind, name, limit, what in words:
        share = weather.shares[name]
        if share.mean() > limit:
            lost = float(share.mean()) * weather.seconds * len(weather.ranks)
            text = f"Ranks spend {share.mean():.0%} of their time {what}"
            text += f" (from {share.min():.0%} to {share.max():.0%})." if len(share) > 1 else "."
            found.append(Finding(kind, text, lost_s=lost))
    return found


def _who(weather: Weather, rows: list[int]) -> str:
    if len(rows) == 1:
        rank = weather.ranks[rows[0]]
        return f"Rank {rank.rank} on {rank.host}" if rank.host else f"Rank {rank.rank}"
    if len(rows) == len(weather.ranks):
        return f"All {len(rows)} ranks"
    hosts = {weather.ranks[row].host for row in rows}
    return f"{len(rows)} of {len(weather.ranks)} ranks" + (f" on {hosts.pop()}" if len(hosts) == 1 else "")


def _worst(found: list[Finding]) -> list[Finding]:
    return sorted(found, key=lambda each: -each.lost_s)


def in_words(found: list[Finding]) -> list[str]:
    """A few sentences: the worst findings of each kind, and how many more there are."""
    texts: list[str] = []
    kinds = list(dict.fromkeys(each.kind for each in found))
    for kind in kinds:
        alike = [each for each in found if each.kind == kind]
        texts += [each.text for each in alike[:_TOLD]]
        if len(alike) > _TOLD:
            texts.append(f"And {len(alike) - _TOLD} more of these ({kind}), less costly.")
    return texts or ["Fair weather: no rank is slow, nothing stalls, no frames cost too much."]
