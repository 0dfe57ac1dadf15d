"""The tests as a whole: seconds, processor seconds, and how many passed, failed and were skipped.

    python bench/suite.py [--keep] [--workers N] [--only PATH ...]

Processor seconds are those of all programs that tests start, also of servers that outlive who started them;
they depend less than the seconds on what else the machine does.  Kernels that a fresh checkout has not
compiled yet are told: the first run compiles them.
"""

import argparse
import ctypes
import os
import re
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from machine import describe_machine, report

ROOT = Path(__file__).parents[1]
# Processes whose parent has ended become children of this one, whose time is counted (Linux).
PR_SET_CHILD_SUBREAPER = 36
WORDS = ("passed", "failed", "error", "skipped")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keep", action="store_true", help="keep the result in bench/results")
    parser.add_argument("--workers", type=int, default=(os.cpu_count() or 1) + 2, help="as make test has")
    parser.add_argument("--only", nargs="+", default=[], metavar="PATH", help="these tests instead of all")
    options = parser.parse_args()
    machine = describe_machine()  # with the load before the tests add to it
    n_compiled = count_kernels()
    figures = run(options.workers, options.only)
    result = {
        "problem": "make test" if not options.only else " ".join(options.only),
        "machine": machine,
        "workers": options.workers,
        "kernels_compiled_meanwhile": count_kernels() - n_compiled,
        **figures,
    }
    report("suite", result, options.keep and not options.only)
    sys.exit(bool(figures["failed"]))


def run(workers: int, only: list[str]) -> dict[str, Any]:
    """What became of the tests, and what they took."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-m", "pytest", "-n", str(workers), "--dist", "loadgroup", *only]
    began, used = time.perf_counter(), used_by_children()
    said: list[str] = []
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as tests:
        assert tests.stdout is not None
        threading.Thread(target=bury_orphans, args=(tests.pid,), daemon=True).start()
        for line in tests.stdout:
            print(line, end="", file=sys.stderr, flush=True)
            said.append(line)
    seconds = time.perf_counter() - began
    bury_orphans(0, patience_s=10.0)
    counts = {word: int(number) for number, word in re.findall(rf"(\d+) ({'|'.join(WORDS)})", said[-1])}
    if tests.returncode and not counts.get("failed", 0) + counts.get("error", 0):
        raise SystemExit(f"pytest has left with status {tests.returncode}: {said[-1].strip()}")
    return {
        "seconds": round(seconds, 1),
        "processor_seconds": round(used_by_children() - used, 1),
        "passed": counts.get("passed", 0),
        "failed": counts.get("failed", 0) + counts.get("error", 0),
        "skipped": counts.get("skipped", 0),
    }


def used_by_children() -> float:
    """Processor seconds of all processes that have ended below this one."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def bury_orphans(tests: int, patience_s: float = float("inf")) -> None:
    """Take note of processes that end here, until the tests themselves have ended, or nothing is left.

    Schedulers wait for those that they have sent away to be gone, which they are when somebody has asked.
    """
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None:
            time.sleep(0.05)
        elif ended.si_pid == tests:
            return
        else:
            os.waitpid(ended.si_pid, 0)


def count_kernels() -> int:
    """Kernels that are kept, compiled, beside the sources."""
    return sum(1 for _ in (ROOT / "src").rglob("__pycache__/*.nbc"))


if __name__ == "__main__":
    main()
