"""The promises that are held by tests, as figures: how many cases, how long, how many failed.

    python bench/promises.py [--keep]

traps          the classic mistakes of the field, each against an independent calculation
round_trips    every format written and read back exactly, under another name
damaged_files  thousands of damaged files, each refused in words or read right
killed_writers files of writers that were killed at random moments
"""

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

from machine import describe_machine, report

ROOT = Path(__file__).parents[1]
TESTS = {
    "traps": [
        "tests/simulation/test_traps.py",
        "tests/particle/test_structure.py",
        "tests/orientation/test_distance.py",
        "tests/volume/test_friedel.py",
        "tests/detector/test_masks.py",
    ],
    "round_trips": [
        "tests/source/test_round_trips.py",
        "tests/source/test_recognition.py",
        "tests/volume/test_mrc.py",
        "tests/volume/test_hdf5.py",
        "tests/detector/test_hdf5.py",
        "tests/detector/test_dragonfly.py",
        "tests/detector/test_crystfel_write.py",
    ],
    "damaged_files": ["tests/source/test_damaged_files.py", "tests/detector/test_damaged_geometry.py"],
    "killed_writers": ["tests/source/test_killed_writer.py"],
}


def run(files: list[str]) -> dict[str, float | int]:
    """Passed and failed cases of some test files, and the seconds they took."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    counts = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|error)", output)}
    failed = counts.get("failed", 0) + counts.get("error", 0)
    return {
        "passed": counts.get("passed", 0),
        "failed": failed,
        "seconds": round(time.perf_counter() - start, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keep", action="store_true", help="keep the result in bench/results")
    options = parser.parse_args()
    figures = {name: run(files) for name, files in TESTS.items()}
    result = {
        "problem": "promises held by tests",
        "machine": describe_machine(),
        "seconds": sum(figure["seconds"] for figure in figures.values()),
        "error": sum(figure["failed"] for figure in figures.values()),
        **figures,
    }
    report("promises", result, options.keep)
    sys.exit(bool(result["error"]))


if __name__ == "__main__":
    main()
