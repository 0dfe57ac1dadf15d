"""Fourier transforms of the device; results are contiguous, as those of cuFFT."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from cupy._array import ndarray
from cupy._names import functions


def contiguous(section: str, library: ModuleType) -> dict[str, Callable[..., Any]]:
    """The functions of a section, with contiguous results."""

    def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
        def work(*given: Any, **named: Any) -> Any:
            named.pop("plan", None)
            found = function(*given, **named)
            if isinstance(found, ndarray) and not found.flags.c_contiguous:
                return found.copy()
            return found

        return work

    return {name: wrapped(function) for name, function in functions(section, library).items()}


globals().update(contiguous("fft", np.fft))
