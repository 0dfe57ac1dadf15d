"""Wheel and source archive hold all that is needed, and the wheel works where the sources are not."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "orienteer"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both archives."""
    pytest.importorskip("hatchling", reason="hatchling, which builds the archives, is not installed")
    folder = tmp_path_factory.mktemp("built")
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def files_of_the_package() -> set[str]:
    """Every file below src/orienteer but what Python and other tools leave there."""
    paths = (path.relative_to(PACKAGE.parent) for path in PACKAGE.rglob("*") if path.is_file())
    return {
        path.as_posix()
        for path in paths
        if "__pycache__" not in path.parts and not any(part.startswith(".") for part in path.parts)
    }


def test_the_wheel_holds_every_file_of_the_package(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert not files_of_the_package() - names
    # Python would import the package without these, and miss them much later.
    for needed in (
        "likelihood/product.cu",
        "dashboard/page/index.html",
        "cluster/sites/generic.sh",
        "py.typed",
    ):
        assert f"orienteer/{needed}" in names
    assert any("/migrations/" in name for name in names)
    assert not {name for name in names if not name.startswith(("orienteer/", "orienteer-"))}


def test_the_source_archive_can_be_tested_and_documented(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    for needed in (
        "pyproject.toml", "README.md", "LICENSE", "CITATION.cff", "SECURITY.md", "CHANGELOG.md",
        "Containerfile", "Makefile", "mkdocs.yml", "tools/environment", "tests/test_imports.py",
        "docs/index.md", "bench/machine.py", "examples/detector/draw_geometry.py",
        "src/orienteer/__init__.py",
    ):  # fmt: skip
        assert needed in names, needed


def test_the_wheel_runs_without_the_sources(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        file.extractall(tmp_path)
    look = "import orienteer, sys; print(orienteer.__file__); orienteer.open"
    # -S and the path of the libraries: what is installed is there, but not the link to these sources.
    libraries = str(Path(pytest.__file__).parents[1])
    script = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {libraries!r}]; {look}"
    done = subprocess.run(
        [sys.executable, "-S", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(tmp_path)
