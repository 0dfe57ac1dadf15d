"""Arrays on the CPU or the GPU through one set of functions: the type of the array picks the library."""

from functools import cache
from types import ModuleType
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orienteer.errors import DeviceError

# A NumPy or CuPy array.  CuPy has no static types, so this is Any; docstrings carry shape and dtype.
Array: TypeAlias = Any
DeviceName: TypeAlias = Literal["auto", "cpu", "cuda"]


def array_namespace(*arrays: Array) -> Any:
    """The library (NumPy or CuPy, behind the array API) that the given arrays belong to.

    >>> array_namespace(np.zeros(3)).__name__
    'array_api_compat.numpy'
    """
    # Called hundreds of times in a step of small models, for which the general way below is too slow.
    if arrays and all(type(array) is np.ndarray for array in arrays):
        return _numpy_namespace()
    import array_api_compat

    return array_api_compat.array_namespace(*arrays)


@cache
def _numpy_namespace() -> Any:
    import array_api_compat.numpy

    return array_api_compat.numpy


@cache
def import_cupy() -> ModuleType | None:
    """CuPy when it is installed and a CUDA device answers, else None."""
    try:
        import cupy

        return cupy if cupy.cuda.runtime.getDeviceCount() > 0 else None
    except Exception:  # a missing or broken driver raises many kinds; all mean "no GPU here"
        return None


def choose_device(device: DeviceName = "auto") -> Literal["cpu", "cuda"]:
    """The device to use for a user's choice; a DeviceError if it is not there.

    >>> choose_device("cpu")
    'cpu'
    """
    if device not in get_args(DeviceName):
        raise DeviceError(
            f"there is no device {device!r}.", f"Devices are {', '.join(get_args(DeviceName))}."
        )
    if device == "cpu":
        return "cpu"
    if import_cupy() is not None:
        return "cuda"
    if device == "auto":
        return "cpu"
    raise DeviceError(
        "device 'cuda' was asked for, but no CUDA device answers on this machine.",
        "Use --device cpu, or run 'orienteer doctor' to see what is missing.",
    )


def namespace_of_device(device: DeviceName) -> Any:
    """The array library of a device: NumPy for "cpu", CuPy for "cuda"."""
    return np if choose_device(device) == "cpu" else import_cupy()


def is_on_gpu(array: Array) -> bool:
    """Whether the array lives in GPU memory."""
    return type(array).__module__.partition(".")[0] == "cupy"


def to_numpy(array: ArrayLike | Array) -> NDArray[Any]:
    """The array as NumPy, copied from the GPU when it lives there."""
    return array.get() if is_on_gpu(array) else np.asarray(array)  # type: ignore[union-attr]


def to_device(array: ArrayLike | Array, device: DeviceName) -> Array:
    """The array in the memory of the device; no copy when it is there already."""
    if choose_device(device) == "cpu":
        return to_numpy(array)
    return import_cupy().asarray(array)  # type: ignore[union-attr]
