"""Loops are compiled also where neither the package nor the home of its user can be written to."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import orienteer
from orienteer.compute.kernel_folder import give_kernels_a_folder

PACKAGE = Path(orienteer.__file__).parent
# Any loop; this one is compiled soonest.
_SORT = """
import numpy as np
from orienteer.posterior._grouping_numba import counting_sort
start, order = np.zeros(3, np.int64), np.zeros(3, np.int64)
counting_sort(np.array([1, 0, 1]), start, order)
print(order)
"""


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package whose folders cannot be written to, not even by root, and a user without a home."""
    package = tmp_path / "site" / "orienteer"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").write_text("a file, so that no folder of this name can be made")
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("HOME", os.devnull)
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    for name in ("NUMBA_CACHE_DIR", "CUPY_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, "")  # and with it what a test leaves there is taken away
        monkeypatch.delenv(name)
    return package


def test_without_any_folder_loops_are_compiled_once_into_one_of_the_user_alone(
    nowhere: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "tmp" / f"orienteer-compiled-{os.getuid()}"
    stamps = []
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", _SORT], capture_output=True, text=True, check=False)
        assert done.stdout.strip() == "[1 0 2]", done.stderr
        stamps.append({path: path.stat().st_mtime_ns for path in folder.rglob("*.nbc")})
    assert stamps[0]
    assert stamps[0] == stamps[1], "the second process has compiled again"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_folder_that_others_may_write_to_is_not_taken(nowhere: Path, tmp_path: Path) -> None:
    taken = tmp_path / "tmp" / f"orienteer-compiled-{os.getuid()}"
    taken.mkdir()
    taken.chmod(0o777)
    give_kernels_a_folder(str(nowhere))
    for name in ("NUMBA_CACHE_DIR", "CUPY_CACHE_DIR"):
        given = Path(os.environ[name])
        assert given != taken
        assert stat.S_IMODE(given.stat().st_mode) == 0o700


def test_a_link_that_somebody_has_put_there_is_not_followed(nowhere: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "tmp" / f"orienteer-compiled-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    give_kernels_a_folder(str(nowhere))
    assert not Path(os.environ["NUMBA_CACHE_DIR"]).is_symlink()


@pytest.mark.parametrize("name", ["NUMBA_CACHE_DIR", "CUPY_CACHE_DIR", "XDG_CACHE_HOME"])
def test_a_folder_that_can_be_written_to_is_left_as_it_is(
    nowhere: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, str(tmp_path / "not" / "yet" / "there"))
    variable = name.replace("XDG_CACHE_HOME", "NUMBA_CACHE_DIR")
    before = os.environ.get(variable)
    give_kernels_a_folder(str(nowhere))
    assert os.environ.get(variable) == before
