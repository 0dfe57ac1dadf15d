"""Kernels of one element at a time, given as a line of C++."""

import ctypes
from typing import Any

import numpy as np

from cupy import _compiler
from cupy._array import ndarray
from cupy._strict import SCALARS

_C = {
    "?": "bool", "b": "signed char", "B": "unsigned char", "h": "short", "H": "unsigned short", "i": "int",
    "I": "unsigned", "l": "long long", "L": "unsigned long long", "f": "float", "d": "double",
}  # fmt: skip


class ElementwiseKernel:
    """``in_params`` and ``out_params`` as in CuPy: types of NumPy, or letters that stand for any."""

    def __init__(
        self, in_params: str, out_params: str, operation: str, name: str = "kernel", **others: Any
    ) -> None:
        if others:
            raise NotImplementedError(f"the rehearsal of ElementwiseKernel knows no {', '.join(others)}")
        self._inputs, self._outputs = _split(in_params), _split(out_params)
        self._operation, self._name = operation, name

    def __call__(self, *args: Any) -> Any:
        parameters = [*self._inputs, *self._outputs]
        if len(args) not in (len(self._inputs), len(parameters)):
            raise TypeError(f"{self._name} takes {len(self._inputs)} or {len(parameters)} arguments")
        for each in args:
            if not isinstance(each, (ndarray, *SCALARS)):
                raise TypeError(f"{self._name}: Unsupported type {type(each)}")
        letters = self._letters(args)
        types = [np.dtype(letters.get(kind, kind)) for kind, _ in parameters]
        here = [each._a if isinstance(each, ndarray) else np.asarray(each) for each in args]
        shape = np.broadcast_shapes(*(array.shape for array in here))
        out = list(args[len(self._inputs) :])
        for dtype in types[len(self._inputs) + len(out) :]:
            out.append(ndarray(shape, dtype))
        for array, dtype, (_, name) in zip(out, types[len(self._inputs) :], self._outputs, strict=True):
            if array.dtype != dtype or array.shape != shape:
                raise TypeError(f"{self._name}: {name} is {array.dtype} {array.shape}, not {dtype} {shape}")
        values = [
            np.array(np.broadcast_to(array, shape), dtype, order="C")
            for array, dtype in zip([*here[: len(self._inputs)], *(x._a for x in out)], types, strict=True)
        ]
        self._run(types, values)
        for array, value in zip(out, values[len(self._inputs) :], strict=True):
            array._a[...] = value
        return out[0] if len(out) == 1 else tuple(out)

    def _letters(self, args: tuple[Any, ...]) -> dict[str, Any]:
        """The type that each letter stands for: that of the arrays, which must agree."""
        found: dict[str, Any] = {}
        parameters = [*self._inputs, *self._outputs]
        for (kind, name), each in zip(parameters, args, strict=False):
            if len(kind) > 1 or not isinstance(each, ndarray | np.generic):
                continue
            if found.setdefault(kind, each.dtype) != each.dtype:
                raise TypeError(f"{self._name}: {name} is {each.dtype}, but {kind} is {found[kind]}")
        return found

    def _run(self, types: list[Any], values: list[Any]) -> None:
        names = [name for _, name in (*self._inputs, *self._outputs)]
        lines = [
            f"{'const ' if number < len(self._inputs) else ''}{_C[dtype.char]} &{name} = "
            f"static_cast<{_C[dtype.char]} *>(data[{number}])[i];"
            for number, (dtype, name) in enumerate(zip(types, names, strict=True))
        ]
        code = "\n".join([
            'extern "C" __attribute__((visibility("default"))) void run(long long n, void **data)',
            "{ for (long long i = 0; i < n; ++i) {", *lines, self._operation, "} }", "",
        ])  # fmt: skip
        library = _compiler.library(code, ())
        data = (ctypes.c_void_p * len(values))(*(value.ctypes.data for value in values))
        library.run(ctypes.c_longlong(values[0].size), data)


def _split(parameters: str) -> list[tuple[str, str]]:
    found = []
    for each in parameters.split(","):
        words = each.split()
        if len(words) != 2:
            raise NotImplementedError(f"the rehearsal of ElementwiseKernel knows no parameter {each!r}")
        found.append((words[0], words[1]))
    return found
