"""Every command of docs/reference/benchmarks.md, one after the other, as far as this machine can.

    python bench/all.py [--list] [--only WORD ...]

The page itself holds the commands (``python tools/benchmarks_page.py --commands`` prints them).  Those for a
GPU are skipped where there is none.  One that fails does not stop the others; which failed is told in the
end.  ``--only`` takes commands that hold one of these words, and ``--list`` says what would be done.
"""

import argparse
import shlex
import subprocess
import sys
from pathlib import Path

from orienteer.compute.arrays import choose_device

ROOT = Path(__file__).parents[1]
PROGRAMS = {"python": [sys.executable], "orienteer": [sys.executable, "-m", "orienteer"]}


def commands() -> list[str]:
    """What the page names, in its order."""
    page = [sys.executable, str(ROOT / "tools" / "benchmarks_page.py"), "--commands"]
    return subprocess.run(page, check=True, capture_output=True, text=True).stdout.splitlines()


def why_not(command: str, has_gpu: bool) -> str:
    """Why a command cannot be run here; empty where it can."""
    return "needs a GPU, and there is none" if "--device cuda" in command and not has_gpu else ""


def main() -> None:
    """Run them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="say what would be done, and do nothing")
    parser.add_argument("--only", nargs="+", metavar="WORD", default=[""], help="commands with such a word")
    options = parser.parse_args()
    has_gpu = choose_device() == "cuda"
    failed = []
    for command in commands():
        if not any(word in command for word in options.only):
            continue
        reason = why_not(command, has_gpu)
        print(f"== {command}" + (f"\n   skipped: {reason}" if reason else ""), flush=True)
        if reason or options.list:
            continue
        program, *words = shlex.split(command)
        if subprocess.run([*PROGRAMS[program], *words], cwd=ROOT).returncode:
            failed.append(command)
    if failed:
        raise SystemExit("these failed:\n  " + "\n  ".join(failed))


if __name__ == "__main__":
    main()
