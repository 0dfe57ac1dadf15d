"""Every CUDA source compiles, on machines with a compiler and no GPU."""

import shutil
import subprocess
from pathlib import Path

import pytest

import orienteer

SOURCES = sorted(Path(orienteer.__file__).parent.rglob("*.cu"))


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
@pytest.mark.parametrize("source", SOURCES, ids=lambda p: p.name)
def test_cuda_source_compiles_without_warnings(source: Path, tmp_path: Path) -> None:
    command = [
        "nvcc",
        "-arch=sm_90",
        "--std=c++17",
        "-Werror",
        "all-warnings",
        "-cubin",
        "-o",
        str(tmp_path / "out"),
        str(source),
    ]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_there_are_cuda_sources() -> None:
    assert SOURCES
