"""The machine a figure was measured on, in words that mean something to a reader elsewhere."""

import json
import os
import platform
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from datetime import date
from pathlib import Path
from typing import Any

from orienteer.compute.machine import memory_GiB, processor_name, usable_cores

RESULTS = Path(__file__).parent / "results"
PAGE_WRITER = Path(__file__).parents[1] / "tools" / "benchmarks_page.py"


def describe_machine(device: str = "cpu") -> dict[str, Any]:
    """What the figure depends on: day, processor, cores, memory, libraries and, for "cuda", the card."""
    import numpy

    machine: dict[str, Any] = {
        "date": date.today().isoformat(),
        "cpu": processor_name(),
        "cores": usable_cores(),
        "memory_GiB": round(memory_GiB()[0], 1),
        "load_average": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "numpy": numpy.__version__,
    }
    if device == "cuda":
        import cupy

        properties = cupy.cuda.runtime.getDeviceProperties(0)
        machine["gpu"] = properties["name"].decode()
        machine["cuda"] = cupy.cuda.runtime.runtimeGetVersion()
        machine["cupy"] = cupy.__version__
    return machine


def add_rows_option(parser: ArgumentParser) -> None:
    """A study of many runs goes on where it was stopped, and several processes may share it."""
    parser.add_argument("--rows", type=Path, help="file of finished runs, to go on from and to add to")
    parser.add_argument(
        "--beside", type=int, default=0, help="other runs that share the machine meanwhile, as its rows say"
    )


def finished_rows(options: Namespace) -> list[dict[str, Any]]:
    """The runs that stand in the file of ``--rows`` already."""
    if not options.rows or not options.rows.exists():
        return []
    return [json.loads(line) for line in options.rows.read_text().splitlines()]


def add_row(options: Namespace, row: dict[str, Any]) -> None:
    """Put a run that has ended into that file, where one is named."""
    if options.beside:
        row["beside"] = options.beside
    if options.rows:
        with options.rows.open("a") as lines:
            lines.write(json.dumps(row) + "\n")


def report(name: str, result: dict[str, Any], keep: bool) -> None:
    """Print the result as JSON; with ``keep`` also write it to ``bench/results``, and the page anew."""
    text = json.dumps(result, indent=2)
    print(text)
    if keep:
        (RESULTS / f"{name}.json").write_text(text + "\n")
        print(f"kept as bench/results/{name}.json", file=sys.stderr)
        if PAGE_WRITER.exists():  # not where bench/ travels alone
            subprocess.run([sys.executable, str(PAGE_WRITER)], check=False, stdout=sys.stderr)


def report_runs(name: str, problem: str, began: float, options: Namespace, **figures: Any) -> None:
    """Report what runs gave, with the seconds since ``began`` (perf_counter) and the machine.

    options : its ``device`` and ``keep`` are used.
    """
    seconds = time.perf_counter() - began
    machine = describe_machine(options.device)
    report(name, {"problem": problem, "machine": machine, "seconds": seconds, **figures}, options.keep)
