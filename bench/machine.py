"""The machine a figure was measured on, in words that mean something to a reader elsewhere."""

import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def cpu_model() -> str:
    """The processor's own name for itself."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def describe_machine(device: str = "cpu") -> dict[str, Any]:
    """What the figure depends on: processor, cores, memory, libraries and, for "cuda", the card."""
    import numpy

    machine: dict[str, Any] = {
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_GiB": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
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


def report(name: str, result: dict[str, Any], keep: bool) -> None:
    """Print the result as JSON; with ``keep`` also write it to ``bench/results/NAME.json``."""
    text = json.dumps(result, indent=2)
    print(text)
    if keep:
        (RESULTS / f"{name}.json").write_text(text + "\n")
        print(f"kept as bench/results/{name}.json", file=sys.stderr)
