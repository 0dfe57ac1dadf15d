"""From a fresh clone to the report: seconds of ``make demo``, the installation apart.

python bench/first_minutes.py [--keep]
"""

import argparse
import subprocess
import tempfile
import time
from pathlib import Path

from machine import describe_machine, report

ROOT = Path(__file__).parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keep", action="store_true", help="keep the result in bench/results")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "orienteer"
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
        start = time.perf_counter()
        subprocess.run(["tools/environment"], cwd=clone, check=True, capture_output=True)
        installed = time.perf_counter()
        subprocess.run(["make", "demo"], cwd=clone, capture_output=True, check=True)
        end = time.perf_counter()
        error = 0 if (clone / "demo" / "run" / "report.html").exists() else 1
    result = {
        "problem": "make demo in a fresh clone, to the report",
        "machine": describe_machine(),
        "seconds": round(end - start, 1),
        "error": error,
        "seconds_of_installation": round(installed - start, 1),
        "seconds_of_demo": round(end - installed, 1),
    }
    report("first_minutes", result, options.keep)


if __name__ == "__main__":
    main()
