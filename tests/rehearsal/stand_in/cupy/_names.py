"""The functions that CuPy has, with the names of their parameters, from ``names.txt``: others do not exist.

Where NumPy or SciPy has a function of the same name, it does the work, on arrays of the device only.
"""

from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from types import ModuleType
from typing import Any

from cupy._limits import check
from cupy._strict import has_device_array, inside, outside, quietly

# Their result says something about arrays, and lies on the host.
ABOUT_ARRAYS = frozenset([
    "array2string", "array_repr", "array_str", "base_repr", "binary_repr", "broadcast_shapes", "can_cast",
    "common_type", "format_float_positional", "format_float_scientific", "get_printoptions", "iscomplexobj",
    "isdtype", "isfortran", "isrealobj", "isscalar", "issubdtype", "iterable", "may_share_memory",
    "mintypecode", "ndim", "printoptions", "promote_types", "result_type", "save", "savetxt", "savez",
    "savez_compressed", "set_printoptions", "shape", "shares_memory", "show_config", "typename",
])  # fmt: skip
# They make arrays, or take numbers as well: no array of the device need be among their arguments.
FROM_NUMBERS = frozenset([
    "arange", "bartlett", "blackman", "diag_indices", "eye", "fftfreq", "rfftfreq", "fromfunction", "full",
    "generate_binary_structure", "hamming", "hanning", "identity", "indices", "iterate_structure", "kaiser",
    "linspace", "logspace", "mask_indices", "next_fast_len", "ones", "tri", "tril_indices", "triu_indices",
    "zeros",
])  # fmt: skip


@cache
def sections() -> dict[str, list[str]]:
    """The lines of ``names.txt`` by section."""
    found: dict[str, list[str]] = {}
    for line in Path(__file__).with_name("names.txt").read_text().splitlines():
        if line.startswith("["):
            lines = found.setdefault(line[1:-1], [])
        elif line and not line.startswith("#"):
            lines.append(line)
    return found


def functions(section: str, library: ModuleType) -> dict[str, Callable[..., Any]]:
    """All functions of a section, done by those of ``library``."""
    found = {}
    for line in sections()[section]:
        name, _, parameters = line.rstrip(")").partition("(")
        if hasattr(library, name):
            found[name] = on_device(name, parameters.split(", "), getattr(library, name))
    return found


def on_device(name: str, parameters: list[str], function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy that takes and gives arrays of the device, with no more parameters than CuPy's."""
    any_number = any(parameter.startswith("*") for parameter in parameters)
    any_keyword = any(parameter.startswith("**") for parameter in parameters)

    @wraps(function, assigned=("__name__", "__doc__"), updated=())
    @quietly
    def work(*given: Any, **named: Any) -> Any:
        if not any_number and len(given) > len(parameters):
            raise TypeError(f"cupy.{name} takes {len(parameters)} arguments, not {len(given)}")
        if not any_keyword and (unknown := set(named) - set(parameters)):
            raise TypeError(f"cupy.{name} has no argument {', '.join(sorted(unknown))}")
        if name in ABOUT_ARRAYS:
            return function(*(_type_of(each) for each in given), **named)
        if name not in FROM_NUMBERS and not has_device_array([*given, *named.values()]):
            raise TypeError(f"cupy.{name} needs an array of the device, not {[type(each) for each in given]}")
        check(name, given)
        here = [inside(each, name) for each in given]
        named_here = {key: inside(value, name) for key, value in named.items()}
        result = function(*here, **named_here)
        out = named.get("out")
        return out if out is not None and not isinstance(out, tuple) else outside(result, *here)

    work.__module__ = "cupy"
    return work


def _type_of(value: Any) -> Any:
    return getattr(value, "_a", value)
