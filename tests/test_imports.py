"""The layering: a folder imports only from folders above it, and the package imports quickly and alone."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import orienteer

PACKAGE = Path(orienteer.__file__).parent
# From upstream to downstream, as in docs/explanation/architecture.md.
ORDER = [
    "errors", "compute", "settings", "detector", "orientation", "particle", "fourier", "slicing", "volume",
    "compare", "phase", "source", "stream", "calibration", "likelihood", "posterior", "simulation",
    "reconstruction", "mtip", "hits", "scaling", "cluster", "run", "online", "validate", "plot", "report",
    "campaign", "live", "dashboard", "cli",
]  # fmt: skip
# First part below ``orienteer`` of every import in a module, function-level imports included.
imports_of = runpy.run_path(str(Path(__file__).parents[1] / "tools" / "architecture_pictures.py"))[
    "imports_of"
]


@pytest.mark.parametrize("folder", ORDER)
def test_a_folder_imports_only_what_lies_upstream(folder: str) -> None:
    allowed = set(ORDER[: ORDER.index(folder) + 1])
    paths = [*(PACKAGE / folder).rglob("*.py"), *PACKAGE.glob(f"{folder}.py")]
    assert paths
    wrong = {str(path.relative_to(PACKAGE)): imports_of(path) - allowed for path in paths}
    assert not {path: names for path, names in wrong.items() if names}


def test_every_folder_has_its_place_in_the_order() -> None:
    folders = {p.name for p in PACKAGE.iterdir() if p.is_dir() and p.name != "__pycache__"}
    files = {p.stem for p in PACKAGE.glob("*.py")} - {"__init__", "__main__"}
    assert folders | files == set(ORDER)


def test_the_architecture_page_shows_the_same_order() -> None:
    page = Path(__file__).parent.parent / "docs" / "explanation" / "architecture.md"
    names = [line.split("`")[1] for line in page.read_text().splitlines() if line.startswith("| `")]
    rows = [
        name.rstrip("/").removesuffix(".py") for name in names if name.endswith("/") or name == "errors.py"
    ]
    assert rows == ORDER


def test_import_is_quick_and_loads_nothing_heavy() -> None:
    heavy_names = ["numba", "matplotlib", "scipy", "h5py", "cupy", "mpi4py", "pydantic"]
    # Time of the processor, and the best of three: others that work on this machine do not count.
    code = (
        "import time; start = time.process_time(); import orienteer; seconds = time.process_time() - start\n"
        f"import sys; print(seconds, *set({heavy_names}) & set(sys.modules))"
    )
    told = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        .stdout.split()
        for _ in range(3)
    ]  # fmt: skip
    assert not [heavy for _, *names in told for heavy in names]
    assert min(float(seconds) for seconds, *_ in told) < 0.4


def test_every_public_name_loads() -> None:
    for name in orienteer.__all__:
        assert getattr(orienteer, name) is not None


def test_no_public_name_is_the_name_of_a_folder() -> None:
    """Python binds a folder's name on the package when it is imported, and would hide the public name."""
    assert not set(orienteer.__all__) & set(ORDER)
