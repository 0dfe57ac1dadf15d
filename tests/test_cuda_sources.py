"""Every CUDA source compiles, on machines with a compiler and no GPU."""

import shutil
import subprocess
from pathlib import Path

import pytest

import orienteer

SOURCES = sorted(Path(orienteer.__file__).parent.rglob("*.cu"))


# Vectors of other lengths than the source's own, for numbers of frames that are no multiple of it.
NARROWER = [("weighing.cu", f"-DVECTOR={vector}") for vector in (1, 2)]
VARIANTS = [(source, "") for source in SOURCES]
VARIANTS += [(source, define) for source in SOURCES for name, define in NARROWER if source.name == name]


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
@pytest.mark.parametrize(("source", "define"), VARIANTS, ids=lambda part: getattr(part, "name", part))
def test_cuda_source_compiles_without_warnings(source: Path, define: str, tmp_path: Path) -> None:
    command = ["nvcc", "-arch=sm_90", "--std=c++17", "-Werror", "all-warnings", "-cubin"]
    command += [define] if define else []
    result = subprocess.run(
        [*command, "-o", str(tmp_path / "out"), str(source)], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr


def test_there_are_cuda_sources() -> None:
    assert SOURCES
    assert len(VARIANTS) == len(SOURCES) + len(NARROWER)
