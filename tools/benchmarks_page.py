"""Write docs/reference/benchmarks.md, and the table in the README, from bench/results.

    python tools/benchmarks_page.py

No number of them is typed: a figure (``tools/benchmarks``) says what was asked and where in which result the
answer stands.  A figure whose result is not there says so.
"""

import json
import re
from pathlib import Path
from types import ModuleType

from benchmarks import cluster, density, emc, foundation, live, mtip
from benchmarks.figure import Figure, Result, date_words, machine_words

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

Every figure that was asked of Orienteer, and what was measured. This page is written by
`python tools/benchmarks_page.py` from the files in `bench/results`: what fell short is here, and what was not
measured says so. A figure is measured again by its command, in a copy of the sources; `--keep` puts the
answer into `bench/results` and writes this page anew. The date is the day on which a result was kept.
Machines that other work shared are marked with their load, which makes seconds longer and rates lower.

`make bench` is for every day: within three minutes it measures ratios, of our time to that of plain work of
the same kind beside it, and says which differ from those in `bench/small_ratios.json`. `make bench-all`
measures the figures of this page.
"""
MARKS = ("<!-- results -->\n", "<!-- end of results -->")


def read_result(name: str) -> Result | None:
    """A kept result, or None where there is none."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def measured(figure: Figure) -> tuple[str, str, str, str]:
    """What was measured, whether it is enough, where and when."""
    result = read_result(figure.result)
    value = None if result is None else figure.value(result)
    if result is None or value is None:
        return MISSING, "", "", ""
    remarks = [words for words in (figure.remark(result), figure.limit(result)) if words]
    answer = "; ".join([f"**{figure.goal.say(value)}**", *remarks])
    is_met = figure.goal.is_met and ("yes" if figure.goal.is_met(value) else "**no**")
    return answer, is_met or "", machine_words(result), date_words(result)


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for name, subject in SUBJECTS:
        parts.append(
            f"\n## {name}\n\n| figure, command | asked | measured | met | machine | date |\n"
            "|---|---|---|---|---|---|\n"
        )
        for figure in subject.FIGURES:
            cells = (f"{figure.what}<br>`{figure.command}`", figure.goal.words, *measured(figure))
            parts.append("| " + " | ".join(cells) + " |\n")
    parts.append("\n## Other results\n\n| file | problem | machine | date |\n|---|---|---|---|\n")
    shown = {figure.result for _, subject in SUBJECTS for figure in subject.FIGURES}
    for path in sorted(RESULTS.glob("*.json")):
        if path.stem not in shown:
            result = read_result(path.stem) or {}
            problem = str(result.get("problem", ""))
            parts.append(f"| `{path.name}` | {problem} | {machine_words(result)} | {date_words(result)} |\n")
    return "".join(parts)


def readme_table() -> str:
    """The figures that a newcomer sees first, as far as they were measured, beside those of others."""
    lines = ["| figure | others | Orienteer | machine | command |", "|---|---|---|---|---|"]
    for _, subject in SUBJECTS:
        for figure in subject.FIGURES:
            answer, is_met, machine, _ = measured(figure)
            if figure.shown_first and answer != MISSING:
                short = answer if is_met != "**no**" else f"{answer} (asked: {figure.goal.words})"
                cells = (figure.what, figure.published, short, machine, f"`{figure.command}`")
                lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def with_table(text: str) -> str:
    """The README with the table between its marks."""
    first, last = (re.escape(mark) for mark in MARKS)
    return re.sub(f"(?s)(?<={first}).*?(?={last})", lambda _: readme_table(), text)


def main() -> None:
    PAGE.write_text(page())
    README.write_text(with_table(README.read_text()))
    print(f"{PAGE.relative_to(ROOT)} and the table of README.md are as bench/results says")


if __name__ == "__main__":
    main()
