"""Kernels that several processes need at once: one of them compiles, the others wait and load what it kept.

Workers begin together, and so do ranks: without this, each of them would compile the same kernels in a fresh
checkout.  As a program, ``python compiled_once.py SCRIPT ARGUMENTS`` runs a script in this way.
"""

import fcntl
import hashlib
import os
import runpy
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

_held: set[str] = set()


@contextmanager
def alone_with(name: str) -> Iterator[None]:
    """Waits until no other process is inside with the same name; a process may enter again what it holds."""
    if name in _held:
        yield
        return
    folder = Path(tempfile.gettempdir()) / f"orienteer-kernels-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    with open(folder / hashlib.sha256(name.encode()).hexdigest()[:24], "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # ends with the file, and with the process
        _held.add(name)
        try:
            yield
        finally:
            _held.remove(name)


def compile_once() -> None:
    """Lets Numba look for a kernel on the disk, and compile it, only while no other process does so.

    A program that needs no kernel does not load Numba for this, which takes longer than all else of it.
    """
    if "numba" in sys.modules:
        _take_turns()
    else:
        sys.meta_path.insert(0, _WhenNumbaIsLoaded())


class _WhenNumbaIsLoaded(MetaPathFinder):
    """Finds nothing by itself; the loader of Numba that others find lets processes take turns."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != "numba":
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def load_and_change(module: ModuleType) -> None:
            load(module)
            _take_turns()

        spec.loader.exec_module = load_and_change  # type: ignore[method-assign]
        return spec


def _take_turns() -> None:
    from numba.core.caching import FunctionCache
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.dispatcher import Dispatcher

    look_or_compile = Dispatcher.compile

    def wait_and_look(self: Any, signature: Any) -> Any:
        if not isinstance(self._cache, FunctionCache):
            return look_or_compile(self, signature)
        code = self.py_func.__code__
        # The lock of the threads of this process comes first: kernels call others, which are locked inside.
        with global_compiler_lock, alone_with(f"{code.co_filename}:{code.co_firstlineno}"):
            return look_or_compile(self, signature)

    Dispatcher.compile = wait_and_look


if __name__ == "__main__":
    compile_once()
    sys.argv = sys.argv[1:]
    sys.path[0] = str(Path(sys.argv[0]).parent)  # what lies beside a script is found, as ever
    runpy.run_path(sys.argv[0], run_name="__main__")
