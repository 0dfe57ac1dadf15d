"""CUDA kernels kept as ``.cu`` files beside the Python that calls them, compiled on first use."""

import re
from functools import cache
from pathlib import Path
from typing import Any

from orienteer.compute.arrays import import_cupy

_INCLUDE = re.compile(r'^#include "([^"]+)"$', re.MULTILINE)


@cache
def load_kernels(source: Path, options: tuple[str, ...] = ()) -> Any:
    """The compiled CuPy module of a ``.cu`` file; ``module.get_function(name)`` gives a kernel.

    Compiler messages name the real file and line.  CuPy caches compiled code on disk by its source text, so
    headers are made part of the text.
    """
    cupy = import_cupy()
    if cupy is None:
        raise RuntimeError("load_kernels needs CuPy and a CUDA device")
    return cupy.RawModule(code=whole_text(source), options=("--std=c++17", *options))


def whole_text(source: Path) -> str:
    """The text of a source with its headers inserted; ``#line`` marks name the file of every line."""
    text = source.read_text()

    def header(match: re.Match[str]) -> str:
        next_line = text.count("\n", 0, match.start()) + 2
        return f'{whole_text(source.parent / match[1])}\n#line {next_line} "{source}"'

    return f'#line 1 "{source}"\n{_INCLUDE.sub(header, text)}'
