"""How large the modules of the package are: lines of the largest, and of the median.

    python bench/modules.py [--keep]

Sources in Python, CUDA and JavaScript count alike; those without a statement, such as most ``__init__.py``,
do not count.
"""

import argparse
from pathlib import Path

import numpy as np

from machine import describe_machine, report

SOURCES = Path(__file__).parents[1] / "src"
KINDS = (".py", ".cu", ".cuh", ".js")
LARGEST = 5


def lines_of_modules() -> dict[str, int]:
    """Lines of each module, by its path below the sources."""
    found = {}
    for path in sorted(SOURCES.rglob("*")):
        if path.suffix in KINDS:
            lines = path.read_text(encoding="utf-8").splitlines()
            if len(lines) > 1:
                found[path.relative_to(SOURCES).as_posix()] = len(lines)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keep", action="store_true", help="keep the result in bench/results")
    options = parser.parse_args()
    lines = lines_of_modules()
    largest = sorted(lines, key=lines.__getitem__, reverse=True)[:LARGEST]
    result = {
        "problem": "lines of the modules of the package",
        "machine": describe_machine(),
        "modules": len(lines),
        "median_lines": float(np.median(list(lines.values()))),
        "largest": {name: lines[name] for name in largest},
    }
    report("modules", result, options.keep)


if __name__ == "__main__":
    main()
