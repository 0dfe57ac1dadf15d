"""CUDA kernels kept as ``.cu`` files beside the Python that calls them, compiled on first use."""

from functools import cache
from pathlib import Path
from typing import Any

from orienteer.compute.arrays import import_cupy


@cache
def load_kernels(source: Path, options: tuple[str, ...] = ()) -> Any:
    """The compiled CuPy module of a ``.cu`` file; ``module.get_function(name)`` gives a kernel.

    Compiler messages name the real file and line.  CuPy keeps the compiled code in its own cache on disk.
    """
    cupy = import_cupy()
    if cupy is None:
        raise RuntimeError("load_kernels needs CuPy and a CUDA device")
    code = f'#line 1 "{source}"\n{source.read_text()}'
    return cupy.RawModule(code=code, options=("--std=c++17", *options))
