"""Write docs/reference/benchmarks.md, and the tables in the README, from bench/results.

    python tools/benchmarks_page.py [--commands]

No number of them is typed: a figure (``tools/benchmarks``) says what its goal is and where in which result
the answer stands.  A figure whose result is not there says so.  ``--commands`` prints what measures the
figures again, a command per line, and writes nothing.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from benchmarks import cluster, density, emc, foundation, live, mtip
from benchmarks.figure import Figure, Result, date_words, machine_words
from benchmarks.others import OTHERS

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results"
PAGE = ROOT / "docs" / "reference" / "benchmarks.md"
README = ROOT / "README.md"
SUBJECTS: tuple[tuple[str, ModuleType], ...] = (
    ("Simulation and files", foundation),
    ("EMC", emc),
    ("Density", density),
    ("M-TIP and states", mtip),
    ("Many ranks", cluster),
    ("Live", live),
)
MISSING = "not measured yet"
HEAD = """---
hide: [toc, navigation]
---

# Benchmarks

Every figure that Orienteer is held to, and what was measured. This page is written by
`python tools/benchmarks_page.py` from the files in `bench/results`: what fell short is here, and what was not
measured says so. A figure is measured again by its command, in a copy of the sources; `--keep` puts the
answer into `bench/results` and writes this page anew. The date is the day on which a result was kept.
Machines that other work shared are marked with their load, which makes seconds longer and rates lower.
A figure without a goal is reported for its own sake.

`make bench` is for every day: within three minutes it measures ratios, of our time to that of plain work of
the same kind beside it, and says which differ from those in `bench/small_ratios.json`. `make bench-all`
runs the commands of this page one after the other, those for a GPU only where there is one.
"""
MARKS = ("<!-- results -->\n", "<!-- end of results -->")
SHORT = "**no**"


def read_result(name: str) -> Result | None:
    """A kept result, or None where there is none."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def figures() -> Iterator[Figure]:
    """All of them, in the order of the page."""
    for _, subject in SUBJECTS:
        yield from subject.FIGURES


def commands() -> list[str]:
    """What measures the figures again: each command once, in the order of the page."""
    return list(dict.fromkeys(figure.command for figure in figures()))


def measured(figure: Figure) -> tuple[str, str, str, str]:
    """What was measured, whether it is enough, where and when."""
    result = read_result(figure.result)
    value = None if result is None else figure.value(result)
    if result is None or value is None:
        return MISSING, "", "", ""
    remarks = [words for words in (figure.remark(result), figure.limit(result)) if words]
    is_met = figure.goal.is_met and ("yes" if figure.goal.is_met(value) else SHORT)
    if is_met == SHORT and (reason := why_short(figure)):
        remarks.append(f"fell short because {reason}")
    answer = "; ".join([f"**{figure.goal.say(value)}**", *remarks])
    return answer, is_met or "", machine_words(result), date_words(result)


def why_short(figure: Figure) -> str:
    """Why the result that is kept falls short, where that is known of it; empty elsewhere."""
    return figure.because.get(date_words(read_result(figure.result) or {}), "")


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for name, subject in SUBJECTS:
        parts.append(
            f"\n## {name}\n\n{_row('figure, command', 'goal', 'measured', 'met', 'machine', 'date')}"
        )
        parts.append("|---|---|---|---|---|---|\n")
        for figure in subject.FIGURES:
            parts.append(_row(f"{figure.what}<br>`{figure.command}`", figure.goal.words, *measured(figure)))
        if hasattr(subject, "below"):
            parts.append(f"\n{subject.below(read_result)}\n")
    parts.append(f"\n## Other results\n\n{_row('file', 'problem', 'result', 'machine', 'date')}")
    parts.append("|---|---|---|---|---|\n")
    for name, in_words in OTHERS.items():
        result = read_result(name)
        if result is not None:
            problem = str(result.get("problem", ""))
            where = (machine_words(result), date_words(result))
            parts.append(_row(f"`{name}.json`", problem, in_words(result), *where))
    return "".join(parts)


def readme_tables() -> str:
    """The figures that a newcomer sees first, as far as they were measured, and all that fell short."""
    first = [_row("what", "Orienteer", "others", "machine"), "|---|---|---|---|\n"]
    short = [_row("what fell short of its goal", "goal", "measured", "because"), "|---|---|---|---|\n"]
    for figure in figures():
        answer, is_met, machine, _ = measured(figure)
        value = answer.partition(";")[0]
        if figure.plain and answer != MISSING:
            first.append(_row(figure.plain, value, figure.published or "–", machine))
        if is_met == SHORT:
            short.append(_row(figure.what, figure.goal.words, value, why_short(figure) or "–"))
    return "".join([*first, "\n", *short] if len(short) > 2 else first)


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |\n"


def with_table(text: str) -> str:
    """The README with the tables between its marks."""
    first, last = (re.escape(mark) for mark in MARKS)
    return re.sub(f"(?s)(?<={first}).*?(?={last})", lambda _: readme_tables(), text)


def main() -> None:
    if "--commands" in sys.argv:
        print("\n".join(commands()))
        return
    PAGE.write_text(page())
    README.write_text(with_table(README.read_text()))
    print(f"{PAGE.relative_to(ROOT)} and the tables of README.md are as bench/results says")


if __name__ == "__main__":
    main()
