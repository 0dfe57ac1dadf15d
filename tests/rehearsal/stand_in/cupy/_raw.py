"""Kernels of CUDA sources, compiled for the processor, with the checks that CuPy and CUDA leave to luck."""

import ctypes
from typing import Any

import numpy as np

from cupy import _compiler
from cupy._array import ndarray

_MOST_THREADS, _MOST_BLOCKS = 1024, (2**31 - 1, 2**16 - 1, 2**16 - 1)


class RawModule:
    """A source whose kernels ``get_function`` gives."""

    def __init__(self, *, code: str, options: tuple[str, ...] = (), **others: Any) -> None:
        if others:
            raise NotImplementedError(f"the rehearsal of RawModule knows no {', '.join(others)}")
        self._library = _compiler.library(code, tuple(options))
        self._kernels: dict[str, Kernel] = {}

    def get_function(self, name: str) -> "Kernel":
        if name not in self._kernels:
            if not hasattr(self._library, f"rehearsal_launch_{name}"):
                raise AttributeError(f"the source has no kernel {name}")
            self._kernels[name] = Kernel(name, self._library)
        return self._kernels[name]


class Kernel:
    """One kernel; called with the grid, the block and the arguments, as with CuPy."""

    def __init__(self, name: str, library: ctypes.PyDLL) -> None:
        self.name = name
        self._run = getattr(library, f"rehearsal_launch_{name}")
        self._run.restype = ctypes.c_char_p
        signature = getattr(library, f"rehearsal_signature_{name}")
        signature.restype = ctypes.c_char_p
        self.parameters: list[str] = signature().decode().split()
        self.most_threads: int = getattr(library, f"rehearsal_threads_{name}")()

    def __call__(self, grid: Any, block: Any, args: Any, *, shared_mem: int = 0, stream: Any = None) -> None:
        sizes = [self._size(grid, "grid"), self._size(block, "block")]
        self._check_sizes(*sizes)
        if len(args) != len(self.parameters):
            raise TypeError(f"{self.name} has {len(self.parameters)} parameters, not {len(args)}")
        values = [
            self._argument(number, kind, value)
            for number, (kind, value) in enumerate(zip(self.parameters, args, strict=True))
        ]
        addresses = (ctypes.c_void_p * max(1, len(values)))(*(value.ctypes.data for value in values))
        three = ctypes.c_uint * 3
        error = self._run(addresses, three(*sizes[0]), three(*sizes[1]), ctypes.c_size_t(shared_mem))
        if error:
            raise RuntimeError(f"{self.name}: {error.decode()}")

    def _size(self, given: Any, what: str) -> list[int]:
        if not isinstance(given, tuple) or not 1 <= len(given) <= 3:
            raise ValueError(
                f"{self.name}: the {what} must be a tuple of one to three numbers, not {given!r}"
            )
        return [int(n) for n in given] + [1] * (3 - len(given))

    def _check_sizes(self, grid: list[int], block: list[int]) -> None:
        if any(not 0 < n <= most for n, most in zip(grid, _MOST_BLOCKS, strict=True)):
            raise RuntimeError(f"{self.name}: CUDA_ERROR_INVALID_VALUE: invalid argument (grid {grid})")
        threads = block[0] * block[1] * block[2]
        if min(block) < 1 or threads > _MOST_THREADS or block[2] > 64:
            raise RuntimeError(f"{self.name}: CUDA_ERROR_INVALID_VALUE: invalid argument (block {block})")
        if self.most_threads and threads > self.most_threads:
            raise RuntimeError(
                f"{self.name}: {threads} threads, but its __launch_bounds__ allow {self.most_threads}"
            )

    def _argument(self, number: int, kind: str, value: Any) -> np.ndarray[Any, Any]:
        """The bytes that CuPy hands over, as an array; refused if the kernel reads them differently."""
        if isinstance(value, ndarray):
            if not _points_to(kind, value.dtype):
                raise self._misfit(number, kind, f"an array of {value.dtype}")
            return np.array([value._a.ctypes.data], np.uint64)
        if value is None:
            value = np.uintp(0)
        if isinstance(value, bool | int | float | complex) and not isinstance(value, np.generic):
            # CuPy passes bool as one byte, int as 64 bits, float as double.
            value = np.asarray(value)[()]
        if not isinstance(value, np.generic):
            raise TypeError(f"{self.name}: argument {number} is of an unsupported type, {type(value)}")
        given = np.array([value])
        if kind.startswith("P"):
            if given.dtype.kind not in "iu" or given.itemsize != 8 or value != 0:
                raise self._misfit(number, kind, f"the number {value!r} of {given.dtype}")
        elif not _same(kind, given.dtype):
            raise self._misfit(number, kind, f"{value!r} of {given.dtype}")
        return given

    def _misfit(self, number: int, kind: str, given: str) -> TypeError:
        wanted = f"a pointer to {_words(kind[1:])}" if kind.startswith("P") else _words(kind)
        return TypeError(f"{self.name}: parameter {number} is {wanted}, but the argument is {given}")


def _points_to(kind: str, dtype: np.dtype[Any]) -> bool:
    if not kind.startswith("P"):
        return False
    if kind == "Pv1" or (kind == "Pu2" and dtype == np.float16) or (kind == "Pu1" and dtype == np.bool_):
        return True
    if dtype.kind == "c":  # two numbers
        return kind[1] == "f" and int(kind[2:]) == dtype.itemsize // 2
    return _same(kind[1:], dtype)


def _same(kind: str, dtype: np.dtype[Any]) -> bool:
    letter = {"i": "u"}.get(dtype.kind, dtype.kind)  # the sign is a matter of taste
    return letter == {"i": "u"}.get(kind[0], kind[0]) and int(kind[1:]) == dtype.itemsize


def _words(kind: str) -> str:
    if kind == "v1":
        return "void"
    return str(np.dtype("?" if kind[0] == "b" else kind))
