"""``orienteer doctor``: what this machine has, and what each missing part would add."""

import importlib.metadata
import importlib.util
import platform
import shutil
from dataclasses import dataclass
from pathlib import Path

import orienteer
from orienteer.cli.console import output, print_json, print_table
from orienteer.cli.options import AsJson
from orienteer.compute.arrays import import_cupy
from orienteer.compute.extras import how_to_install
from orienteer.compute.machine import memory_GiB, processor_name, usable_cores
from orienteer.compute.words import counted

REQUIRED = (
    "numpy",
    "array_api_compat",
    "scipy",
    "numba",
    "h5py",
    "finufft",
    "gemmi",
    "mrcfile",
    "matplotlib",
    "pydantic",
    "typer",
    "rich",
)


@dataclass(frozen=True)
class Finding:
    """One part of the machine: whether it is present, what it is, and what it is good for.

    gives : what it would add; how : the command that installs it.  Both are empty if it is present.
    """

    part: str
    present: bool
    detail: str
    gives: str = ""
    how: str = ""


def doctor(as_json: AsJson = False) -> None:
    """Show machine, memory, BLAS, GPU, CUDA, MPI and versions, and how to get what is missing."""
    findings = examine()
    if as_json:
        print_json({"orienteer": orienteer.__version__, "findings": findings})
        return
    print_table(
        [("ok" if f.present else "--", f.part, f.detail) for f in findings],
        title=f"Orienteer {orienteer.__version__} on this machine",
    )
    missing = [f for f in findings if not f.present]
    if missing:
        output.print()
        print_table(
            [(f.part, f.gives, f.how) for f in missing], header=("missing", "would give", "how to get it")
        )
    required = [f.part for f in missing if f.part in REQUIRED]
    output.print()
    output.print(
        "Ready." if not required else f"Not ready: {', '.join(required)} missing.  Try: {how_to_install()}"
    )


def examine() -> list[Finding]:
    """All findings about this machine, in the order in which they are shown."""
    return [
        Finding("Python", True, f"{platform.python_version()} ({platform.system()} {platform.machine()})"),
        Finding("processor", True, f"{processor_name()}, {counted(usable_cores(), 'core')} usable"),
        Finding("memory", True, "{:.1f} GiB, {:.1f} GiB free".format(*memory_GiB())),
        Finding(
            "disk", True, f"{shutil.disk_usage(Path.cwd()).free / 2**30:.0f} GiB free in the current folder"
        ),
        *(_library(name) for name in REQUIRED),
        Finding("BLAS", True, _blas()),
        *_gpu(),
        _optional("MPI", "mpi4py", "runs on several nodes", "mpi"),
        _optional(
            "HDF5 filters",
            "hdf5plugin",
            "CXI files with bitshuffle, LZ4 or Zstandard",
            "files",
        ),
        _optional("ZeroMQ", "zmq", "live streams from the detector", "live"),
        _optional("database", "sqlalchemy", "runs and shots of a beam time", "campaign"),
        _optional("PostgreSQL", "psycopg", "that database on a server", "postgres"),
        _optional("web", "fastapi", "the dashboard in a browser", "web"),
    ]


def _library(name: str) -> Finding:
    if importlib.util.find_spec(name) is None:
        return Finding(name, False, "not installed", "needed", f"pip install {name}")
    return Finding(name, True, importlib.metadata.version(name))


def _optional(part: str, module: str, gives: str, extra: str) -> Finding:
    if importlib.util.find_spec(module) is None:
        return Finding(part, False, "not installed", gives, how_to_install(extra))
    distribution = {"zmq": "pyzmq"}.get(module, module)
    return Finding(part, True, f"{distribution} {importlib.metadata.version(distribution)}")


def _blas() -> str:
    import numpy as np

    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()


def _gpu() -> list[Finding]:
    gives = "simulation and reconstruction in a fraction of the time"
    driver = shutil.which("nvidia-smi") is not None
    if importlib.util.find_spec("cupy") is None:
        how = f"{how_to_install('gpu')} (CUDA 13; 'gpu-cuda12' for an older driver)"
        return [
            Finding(
                "GPU",
                False,
                "CuPy is not installed" + ("" if driver else ", no NVIDIA driver found"),
                gives,
                how,
            )
        ]
    cupy = import_cupy()
    if cupy is None:
        how = (
            "install the NVIDIA driver; on a cluster, ask for a GPU node"
            if not driver
            else "check 'nvidia-smi' and CUDA_VISIBLE_DEVICES"
        )
        return [Finding("GPU", False, "CuPy is installed, but no CUDA device answers", gives, how)]
    runtime = cupy.cuda.runtime
    found = []
    for number in range(runtime.getDeviceCount()):
        properties = runtime.getDeviceProperties(number)
        detail = f"{properties['name'].decode()}, {properties['totalGlobalMem'] / 2**30:.0f} GiB"
        found.append(Finding(f"GPU {number}", True, detail))
    cuda = f"{_version(runtime.runtimeGetVersion())} (driver up to {_version(runtime.driverGetVersion())})"
    return [*found, Finding("CUDA", True, cuda), Finding("CuPy", True, cupy.__version__)]


def _version(number: int) -> str:
    """CUDA's version number as text: 13000 is 13.0."""
    return f"{number // 1000}.{number % 1000 // 10}"
